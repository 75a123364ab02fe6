import { isDeepStrictEqual } from "node:util";
import type { Heads, RingBlock } from "../core/heads.ts";
import { areRulesKnown, type ChainForks, newestRulesAt } from "../ethereum/rules.ts";
import { isAbsent } from "../verification/jsonFields.ts";

/**
 * Header fields that a fork added (EIP-1559, 4895, 4844, 4788, 7685, 7928). Every client returns them from that fork on.
 * Before it, geth pushes some of them with `null`, and omits them over HTTP (docs/reference/state.md, Block access lists).
 */
const FORK_FIELDS = [
  "baseFeePerGas",
  "withdrawalsRoot",
  "blobGasUsed",
  "parentBeaconBlockRoot",
  "requestsHash",
  "blockAccessListHash",
] as const;

export interface SameRulesOptions {
  /** Undefined while the rules of the chain are not known. */
  forks(): ChainForks | undefined;
  heads(): Heads | undefined;
}

/** Creates the function that compares the rules of a block with those of its parent: by known forks, and by header fields. */
export const createSameRules = ({ forks, heads }: SameRulesOptions) => {
  const hasSameFields = (parent: RingBlock, block: RingBlock): boolean => {
    const before = heads()?.header(parent.number);
    const after = heads()?.header(block.number);
    return (
      before === undefined ||
      after === undefined ||
      FORK_FIELDS.every((field) => isAbsent(before[field]) === isAbsent(after[field]))
    );
  };
  const hasSameForks = (parent: RingBlock, block: RingBlock): boolean => {
    const known = forks();
    return (
      known === undefined ||
      (areRulesKnown(known, parent.timestamp) === areRulesKnown(known, block.timestamp) &&
        isDeepStrictEqual(
          newestRulesAt(known, parent.number, parent.timestamp),
          newestRulesAt(known, block.number, block.timestamp),
        ))
    );
  };
  return (parent: RingBlock, block: RingBlock): boolean => hasSameFields(parent, block) && hasSameForks(parent, block);
};
