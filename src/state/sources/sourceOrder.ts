import type { WriteSetOrigin, WriteSetSource } from "../writeSet.ts";

/**
 * The order in which `auto` asks: the free source, then the one that a header proves.
 * Nothing proves a trace before its values were compared for some time, so that an operator has to name it.
 */
const AUTO: readonly WriteSetOrigin[] = ["feed", "accessList"];

/** Returns the sources of a chain in the order in which they are asked. `auto` never executes a block. */
export const selectWriteSetSources = (
  option: "auto" | WriteSetOrigin,
  available: readonly WriteSetSource[],
): readonly WriteSetSource[] => {
  const origins = option === "auto" ? AUTO : [option];
  return origins.flatMap((origin) => available.filter((source) => source.origin === origin));
};
