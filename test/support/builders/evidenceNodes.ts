import type { EvidenceNode } from "../../../src/verification/evidence.ts";

/** Nodes that can be used and get every method. */
export const evidenceNodes =
  (...names: readonly string[]) =>
  (): readonly EvidenceNode[] =>
    names.map((name) => ({
      name,
      state: { isCordoned: false },
      available: true,
      serves: () => true,
      accepts: () => true,
    }));
