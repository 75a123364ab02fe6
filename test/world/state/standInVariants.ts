import type { TraceDialect } from "./diffTrace.ts";
import type { TracedRefunds } from "./randomStateBlocks.ts";
import type { StandInFork } from "./standInChain.ts";

/** A stand-in node, and the source of its write sets. */
export interface StandInVariant {
  readonly name: string;
  readonly fork: StandInFork;
  /** Undefined: its source are access lists. */
  readonly traces?: TraceDialect;
  /** The service subscribes to its heads, which have null for the fields of a later fork. */
  readonly pushes?: true;
  /** Blocks give back gas, and traces show it or do not. */
  readonly refunds?: TracedRefunds;
}

export const STAND_INS: readonly StandInVariant[] = [
  { name: "trace of geth, Prague", fork: "prague", traces: "geth" },
  { name: "trace of geth with pushed heads, Prague", fork: "prague", traces: "geth", pushes: true },
  { name: "trace of anvil, Prague", fork: "prague", traces: "anvil" },
  { name: "trace of geth, Shanghai", fork: "shanghai", traces: "geth" },
  { name: "trace of geth with refunds, settled", fork: "prague", traces: "geth", refunds: "settled" },
  { name: "trace of geth with refunds, unsettled", fork: "prague", traces: "geth", refunds: "unsettled" },
  { name: "block access list", fork: "amsterdam" },
];
