export type ScriptArgument = string | number | Buffer;

/** Runs Lua in Redis, as one step, on one key. Rejects where there is no answer in time: it may have run then. */
export type RunScript = (lua: string, key: string, args: readonly ScriptArgument[]) => Promise<unknown>;
