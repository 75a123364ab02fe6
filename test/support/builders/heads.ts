import type { BlockId, Heads, RingBlock } from "../../../src/core/heads.ts";
import type { Hash } from "../../../src/ethereum/hex.ts";

/** A hash that contains its number and its fork. */
export const hashOf = (number: number | bigint, fork = 0): Hash =>
  `0x${number.toString(16).padStart(32, "0")}${fork.toString(16).padStart(32, "0")}`;

/** A block of a chain with two seconds per block and empty blooms. Its parent is on fork 0, unless `parentFork` names another. */
export const blockOf = (number: number | bigint, fork = 0, parentFork = 0): RingBlock => ({
  number: BigInt(number),
  hash: hashOf(number, fork),
  parentHash: hashOf(BigInt(number) - 1n, parentFork),
  timestamp: BigInt(number) * 2n,
  logsBloom: new Uint8Array(256),
});

export interface ChainOptions {
  readonly latest: number | bigint;
  readonly finalized?: number | bigint | undefined;
  readonly oldest?: number | bigint;
  readonly fork?: number;
  /** The first block of the fork; by default all blocks are on it. */
  readonly forkedAt?: number | bigint;
}

/** Heads as a ring returns them, with empty blooms. */
export const createHeads = ({ latest, finalized, oldest = 0, fork = 0, forkedAt = 0 }: ChainOptions): Heads => {
  const forkOf = (number: bigint): number => (number >= forkedAt ? fork : 0);
  const block = (number: bigint): RingBlock => blockOf(number, forkOf(number), forkOf(number - 1n));
  const id = (number: number | bigint | undefined): BlockId | undefined =>
    number === undefined ? undefined : { number: BigInt(number), hash: block(BigInt(number)).hash };
  return {
    latest: block(BigInt(latest)),
    isAgreed: false,
    safe: id(finalized),
    finalized: id(finalized),
    oldest: BigInt(oldest),
    at: (number) => (number >= oldest && number <= latest ? block(number) : undefined),
    header: () => undefined,
  };
};
