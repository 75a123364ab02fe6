import type { WriteSetSource, WriteSetSourceKind } from "../writeSet.ts";

/** The order in which `auto` asks: the free source, then the one that a header proves, then the one that is on probation first. */
const AUTO: readonly WriteSetSourceKind[] = ["feed", "accessList", "trace"];

/** Returns the sources of a chain in the order in which they are asked. `auto` never executes a block. */
export const selectWriteSetSources = (
  option: "auto" | WriteSetSourceKind,
  available: readonly WriteSetSource[],
): readonly WriteSetSource[] => {
  const kinds = option === "auto" ? AUTO : [option];
  return kinds.flatMap((kind) => available.filter((source) => source.kind === kind));
};
