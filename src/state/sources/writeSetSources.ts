import type { WriteSetOrigin, WriteSetSource } from "../writeSet.ts";

/** `auto`: feed, access list, trace. Any other value names the only source. */
export type WriteSetSourceOption = "auto" | WriteSetOrigin;

/** The order in which sources are tried: the free one, the one that a header proves, the one that is audited. */
const AUTO: readonly WriteSetOrigin[] = ["feed", "accessList", "trace"];

/** Returns the sources of a chain in the order in which they are tried. The first write set is used. */
export const selectWriteSetSources = (
  option: WriteSetSourceOption,
  available: readonly WriteSetSource[],
): readonly WriteSetSource[] => {
  const origins = option === "auto" ? AUTO : [option];
  return origins.flatMap((origin) => available.filter((source) => source.origin === origin));
};
