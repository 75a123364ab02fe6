import type { StateReader, StateValues } from "../core/stateReader.ts";
import type { PendingEnvironment } from "../core/view.ts";
import { formatWord, type Hash } from "../ethereum/hex.ts";
import type { BlockEnvironment } from "../evm/engine.ts";
import { BEACON_ROOTS, BLOCK_HASHES, RING_SLOTS } from "../evm/systemCalls.ts";

const BLOB_BASE_FEE_WITHOUT_BLOBS = 1n;

/** Returns the block environment that contracts see. */
export const blockOf = (
  environment: PendingEnvironment,
  ancestors: ReadonlyMap<bigint, Hash>,
  reader: StateReader,
): BlockEnvironment => ({
  number: environment.number,
  timestamp: environment.timestamp,
  coinbase: environment.feeRecipient,
  gasLimit: environment.gasLimit,
  baseFee: environment.baseFeePerGas,
  prevRandao: environment.prevRandao,
  blobBaseFee: BLOB_BASE_FEE_WITHOUT_BLOBS,
  blockHash: (number) => ancestors.get(number) ?? reader.blockHash(number),
});

/** Hashes of blocks that are not sealed here yet, by number: the block that follows has the hash of its parent. */
export const parentHashes = (
  jobs: readonly { readonly environment: PendingEnvironment }[],
): ReadonlyMap<bigint, Hash> =>
  new Map(jobs.map(({ environment: { number, parentHash } }) => [number - 1n, parentHash]));

const NOTHING = new Uint8Array(0);

/**
 * Returns zero values for the slots that the system calls at a block's start overwrite (EIP-4788, EIP-2935).
 * Their old values do not matter, so that no node has to be asked.
 */
export const overwritten = ({ number, timestamp }: PendingEnvironment): StateValues => {
  const time = timestamp % RING_SLOTS;
  return {
    accounts: [],
    codes: [],
    slots: [
      [BEACON_ROOTS, formatWord(time), NOTHING],
      [BEACON_ROOTS, formatWord(time + RING_SLOTS), NOTHING],
      [BLOCK_HASHES, formatWord((number - 1n) % RING_SLOTS), NOTHING],
    ],
    blockHashes: [],
  };
};
