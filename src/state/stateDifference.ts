import type { BlockId } from "../core/heads.ts";
import type { StateKey } from "./stateKey.ts";

/** A known value that differs from a node's. */
export interface StateDifference {
  readonly key: StateKey;
  readonly block: BlockId;
  /** 64 digits of hex, for a code its hash. */
  readonly known: string;
  readonly actual: string;
  /** The node that returned `actual`. Undefined if its name is not known. */
  readonly node?: string | undefined;
}
