import type { PendingEnvironment } from "../core/view.ts";
import { type BlockHeader, EMPTY_REQUESTS_HASH, hashHeader } from "../ethereum/blockHeader.ts";
import { type Hash, parseData } from "../ethereum/hex.ts";
import { type LeafCache, orderedTrieRoot } from "../ethereum/orderedTrie.ts";
import type { Flashblock, FlashblockDiff } from "./flashblock.ts";

/** Returns the header of a block that ends with a message (docs/reference/flashblocks.md, Block hash). */
export const messageHeader = (
  environment: PendingEnvironment,
  diff: FlashblockDiff,
  transactionsRoot: Hash,
): BlockHeader => ({
  parentHash: environment.parentHash,
  miner: environment.feeRecipient,
  stateRoot: diff.stateRoot,
  transactionsRoot,
  receiptsRoot: diff.receiptsRoot,
  logsBloom: parseData(diff.logsBloom),
  number: environment.number,
  gasLimit: environment.gasLimit,
  gasUsed: diff.gasUsed,
  timestamp: environment.timestamp,
  extraData: environment.extraData,
  mixHash: environment.prevRandao,
  baseFeePerGas: environment.baseFeePerGas,
  withdrawalsRoot: diff.withdrawalsRoot,
  blobGasUsed: diff.blobGasUsed ?? 0n,
  excessBlobGas: 0n,
  parentBeaconBlockRoot: environment.parentBeaconBlockRoot,
  requestsHash: EMPTY_REQUESTS_HASH,
});

/** Parsed transactions by message: a block's root is computed again for each of its messages. */
const parsed = new WeakMap<Flashblock, readonly Uint8Array[]>();
const leaves: LeafCache = new WeakMap();

const rawsOf = (message: Flashblock): readonly Uint8Array[] => {
  const raws = parsed.get(message) ?? message.diff.transactions.map(parseData);
  parsed.set(message, raws);
  return raws;
};

/** Whether the last of a block's messages has the hash of its own header. `messages` begin with index 0. */
export const hasTrueHash = (messages: readonly Flashblock[]): boolean => {
  const base = messages[0]?.base;
  const newest = messages.at(-1);
  if (base === undefined || newest === undefined) {
    return false;
  }
  const { blockNumber: number, ...rest } = base;
  const root = orderedTrieRoot(messages.flatMap(rawsOf), leaves);
  return hashHeader(messageHeader({ number, ...rest }, newest.diff, root)) === newest.diff.blockHash;
};
