import type { WriteSetOrigin, WriteSetSource } from "../writeSet.ts";

/** The order in which `auto` asks: the free source, then the one that a header proves, then the one that is on probation first. */
const AUTO: readonly WriteSetOrigin[] = ["feed", "accessList", "trace"];

/** Returns the sources of a chain in the order in which they are asked. `auto` never executes a block. */
export const selectWriteSetSources = (
  option: "auto" | WriteSetOrigin,
  available: readonly WriteSetSource[],
): readonly WriteSetSource[] => {
  const origins = option === "auto" ? AUTO : [option];
  return origins.flatMap((origin) => available.filter((source) => source.origin === origin));
};
