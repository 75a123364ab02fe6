import type { PendingEnvironment } from "../core/view.ts";
import { type BlockHeader, EMPTY_REQUESTS_HASH, hashHeader } from "../ethereum/blockHeader.ts";
import { type Hash, parseData } from "../ethereum/hex.ts";
import { type LeafCache, orderedTrieRoot } from "../ethereum/orderedTrie.ts";
import type { Commitments, FeedMessage } from "./feedMessage.ts";

/** Returns the header of a block that ends with a message (docs/reference/flashblocks.md, Block hash). */
export const pendingHeader = (
  environment: PendingEnvironment,
  commitments: Commitments,
  transactionsRoot: Hash,
): BlockHeader => ({
  parentHash: environment.parentHash,
  miner: environment.feeRecipient,
  stateRoot: commitments.stateRoot,
  transactionsRoot,
  receiptsRoot: commitments.receiptsRoot,
  logsBloom: parseData(commitments.logsBloom),
  number: environment.number,
  gasLimit: environment.gasLimit,
  gasUsed: commitments.gasUsed,
  timestamp: environment.timestamp,
  extraData: environment.extraData,
  mixHash: environment.prevRandao,
  baseFeePerGas: environment.baseFeePerGas,
  withdrawalsRoot: commitments.withdrawalsRoot,
  blobGasUsed: commitments.blobGasUsed ?? 0n,
  excessBlobGas: 0n,
  parentBeaconBlockRoot: environment.parentBeaconBlockRoot,
  requestsHash: EMPTY_REQUESTS_HASH,
});

/** Compares messages with their hashes. It remembers their transactions: a block's root is computed again for each of its messages. */
export class MessageHashes {
  readonly #parsed = new WeakMap<FeedMessage, readonly Uint8Array[]>();
  readonly #leaves: LeafCache = new WeakMap();

  /** Whether the last of a block's messages has the hash of its own header. `messages` begin with index 0. */
  isTrue(messages: readonly FeedMessage[]): boolean {
    const environment = messages[0]?.environment;
    const newest = messages.at(-1);
    if (environment === undefined || newest === undefined) {
      return false;
    }
    const raws = messages.flatMap((message) => this.#rawsOf(message));
    const header = pendingHeader(environment, newest.commitments, orderedTrieRoot(raws, this.#leaves));
    return hashHeader(header) === newest.commitments.blockHash;
  }

  #rawsOf(message: FeedMessage): readonly Uint8Array[] {
    const raws = this.#parsed.get(message) ?? message.transactions.map(parseData);
    this.#parsed.set(message, raws);
    return raws;
  }
}
