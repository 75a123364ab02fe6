/** Values that replicas share for a limited time. */
export interface SharedValues {
  /** Never rejects. Returns undefined, after a short wait, if the shared store does not answer. */
  get(key: string): Promise<Uint8Array | undefined>;
  /** Resolves when the value is written, or cannot be. Never rejects. */
  set(key: string, bytes: Uint8Array, seconds: number): Promise<void>;
}

export type ScriptArgument = string | number | Buffer;

/** Runs a Lua script in Redis atomically, on one key. Rejects if no reply arrives in time: the script may have run then. */
export type RunScript = (lua: string, key: string, args: readonly ScriptArgument[]) => Promise<unknown>;
