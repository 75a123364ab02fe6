export type ScriptArgument = string | number | Buffer;

/** Runs a Lua script in Redis atomically, on one key. Rejects if no reply arrives in time: the script may have run then. */
export type RunScript = (lua: string, key: string, args: readonly ScriptArgument[]) => Promise<unknown>;
