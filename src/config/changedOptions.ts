import { isDeepStrictEqual } from "node:util";
import type { Config } from "./schema.ts";

/** Options of these sections apply only after a restart. */
const FIXED_SECTIONS = ["server", "cache", "usage", "tracing"] as const;

/** Returns the changed options that a reload does not apply, such as `server.port`. */
export const changedFixedOptions = (before: Config, after: Config): readonly string[] =>
  FIXED_SECTIONS.flatMap((section) => {
    const old = new Map<string, unknown>(Object.entries(before[section] ?? {}));
    const now = after[section] ?? {};
    const changed = Object.entries(now).filter(([key, value]) => !isDeepStrictEqual(old.get(key), value));
    const removed = [...old.keys()].filter((key) => !(key in now));
    return [...changed.map(([key]) => key), ...removed].map((key) => `${section}.${key}`);
  });
