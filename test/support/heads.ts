import type { BlockId, Heads, RingBlock } from "../../src/core/heads.ts";
import type { Hash } from "../../src/ethereum/hex.ts";

/** A hash that contains its number and its fork. */
export const hashOf = (number: bigint, fork = 0): Hash =>
  `0x${fork.toString(16).padStart(8, "f")}${number.toString(16).padStart(56, "0")}`;

export interface ChainOptions {
  readonly latest: bigint;
  readonly finalized?: bigint;
  readonly oldest?: bigint;
  readonly fork?: number;
  /** Blocks at and above this one are of the fork; all by default. */
  readonly forkedAt?: bigint;
}

/** Heads as a ring would give them, with empty blooms. */
export const createHeads = ({ latest, finalized, oldest = 0n, fork = 0, forkedAt = 0n }: ChainOptions): Heads => {
  const forkOf = (number: bigint) => (number >= forkedAt ? fork : 0);
  const block = (number: bigint): RingBlock => ({
    number,
    hash: hashOf(number, forkOf(number)),
    parentHash: hashOf(number - 1n, forkOf(number - 1n)),
    timestamp: number * 2n,
    logsBloom: new Uint8Array(256),
  });
  const id = (number: bigint | undefined): BlockId | undefined => (number === undefined ? undefined : block(number));
  return {
    latest: block(latest),
    safe: id(finalized),
    finalized: id(finalized),
    oldest,
    at: (number) => (number >= oldest && number <= latest ? block(number) : undefined),
    header: () => undefined,
  };
};
