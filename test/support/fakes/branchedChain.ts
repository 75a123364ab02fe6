import { EMPTY_REQUESTS_HASH, formatHeader, hashHeader } from "../../../src/ethereum/blockHeader.ts";
import { bloomOfLogs } from "../../../src/ethereum/bloom.ts";
import { formatTransaction } from "../../../src/ethereum/formatTransaction.ts";
import { type Address, type Data, type Hash, ZERO_HASH } from "../../../src/ethereum/hex.ts";
import { keccak256Hex } from "../../../src/ethereum/keccak.ts";
import { orderedTrieRoot } from "../../../src/ethereum/orderedTrie.ts";
import { parseTransaction } from "../../../src/ethereum/parseTransaction.ts";
import { encodeReceipt, formatReceipt, type Receipt, type RpcReceipt } from "../../../src/ethereum/receipt.ts";
import { encodeNumber } from "../../../src/ethereum/rlp.ts";
import { CHAIN_ID } from "../standIn/standInChain.ts";
import { createTransaction } from "../standIn/standInTransactions.ts";
import type { FakeBlock, FakeChain } from "./fakeChain.ts";
import { FakeError } from "./fakeNode.ts";

/** A block with one transfer. Its hash, roots and bloom are right, so that it passes each check of a single block. */
export interface BranchedBlock extends FakeBlock {
  readonly fullJson: Readonly<Record<string, unknown>>;
  readonly transaction: Hash;
  readonly receipt: RpcReceipt;
  /** The balance of each account after the block. */
  readonly balance: string;
}

/** Occurs in each invented block, log, receipt and balance, and in no honest one. */
export const FORGED = "bad0bad0";

export const TOKEN: Address = "0x00000000000000000000000000000000000070ce";
export const HOLDER: Address = "0x00000000000000000000000000000000000a11ce";
const TRANSFER: Hash = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef";
const START_SECONDS = 1_700_000_000n;
const GAS_USED = 50_000n;
const BASE_FEE = 7n;
const SAFE_DEPTH = 4;
const FINALIZED_DEPTH = 8;

const word = (hex: string): Hash => `0x${hex.replace("0x", "").padStart(64, "0")}`;

const sealBlock = (parent: BranchedBlock | undefined, isForged: boolean, seconds: bigint): BranchedBlock => {
  const number = (parent?.number ?? -1n) + 1n;
  const mark = isForged ? FORGED : "0";
  const value = word(`${mark}${number.toString(16)}`);
  const own = createTransaction({ sender: HOLDER, nonce: number, to: TOKEN, value: BigInt(value) });
  const transaction = parseTransaction(own.raw);
  const logs = [{ address: TOKEN, topics: [TRANSFER, word(HOLDER), word(TOKEN)], data: value as Data }];
  const logsBloom = bloomOfLogs(logs);
  const receipt: Receipt = { type: transaction.type, status: true, cumulativeGasUsed: GAS_USED, logsBloom, logs };
  const header = {
    parentHash: parent?.hash ?? ZERO_HASH,
    miner: `0x${mark.padStart(40, "0")}` as Address,
    stateRoot: keccak256Hex(encodeNumber(number)),
    transactionsRoot: orderedTrieRoot([transaction.raw]),
    receiptsRoot: orderedTrieRoot([encodeReceipt(receipt)]),
    logsBloom,
    ...{ number, gasLimit: 30_000_000n, gasUsed: GAS_USED, timestamp: START_SECONDS + number * seconds },
    ...{ extraData: "0x" as const, mixHash: ZERO_HASH, baseFeePerGas: BASE_FEE, withdrawalsRoot: orderedTrieRoot([]) },
    ...{ blobGasUsed: 0n, excessBlobGas: 0n, parentBeaconBlockRoot: ZERO_HASH, requestsHash: EMPTY_REQUESTS_HASH },
  };
  const hash = hashHeader(header);
  const place = { blockHash: hash, blockNumber: number, transactionIndex: 0 };
  const rest = { ...formatHeader(header, hash), size: "0x400", uncles: [], withdrawals: [] };
  const formatted = formatTransaction(transaction, { ...place, baseFee: BASE_FEE, sender: HOLDER });
  return {
    ...{ number, hash, parentHash: header.parentHash, timestamp: header.timestamp, transaction: transaction.hash },
    json: { ...rest, transactions: [transaction.hash] },
    fullJson: { ...rest, transactions: [formatted] },
    receipt: formatReceipt(receipt, {
      ...place,
      ...{ transaction, sender: HOLDER, baseFee: BASE_FEE, gasUsed: GAS_USED, firstLogIndex: 0 },
    }),
    balance: `0x${mark === "0" ? "1" : mark}${number.toString(16)}`,
  };
};

/** One node's chain. Chains that are copies of each other have the same blocks until they grow apart. */
export class BranchedChain implements FakeChain {
  readonly chainId = Number(CHAIN_ID);
  readonly #seconds: bigint;
  readonly #known: Map<string, BranchedBlock>;
  readonly #listeners = new Set<(blocks: readonly FakeBlock[]) => void>();
  #blocks: readonly BranchedBlock[];

  constructor(height: number, secondsPerBlock = 2) {
    this.#seconds = BigInt(secondsPerBlock);
    this.#blocks = [];
    this.#known = new Map();
    this.mine(height + 1);
  }

  get blocks(): readonly BranchedBlock[] {
    return this.#blocks;
  }

  get latest(): BranchedBlock {
    const latest = this.#blocks.at(-1);
    if (latest === undefined) {
      throw new Error("a chain without blocks");
    }
    return latest;
  }

  mine(count = 1, isForged = false): void {
    const added: BranchedBlock[] = [];
    for (let index = 0; index < count; index++) {
      added.push(sealBlock(added.at(-1) ?? this.#blocks.at(-1), isForged, this.#seconds));
    }
    this.#setBlocks([...this.#blocks, ...added], added);
  }

  byHash(hash: unknown): BranchedBlock | undefined {
    return this.#known.get(String(hash));
  }

  /** Replaces the newest blocks by invented ones. */
  reorg(depth: number, count: number): void {
    this.follow(this, depth);
    this.mine(count, true);
  }

  rewind(height: number): void {
    this.follow(this, this.#blocks.length - 1 - height);
  }

  /** Returns a chain with the same blocks. */
  copy(): BranchedChain {
    const copy = new BranchedChain(0, Number(this.#seconds));
    copy.follow(this);
    return copy;
  }

  /** Takes the blocks of another chain, without the newest `lag` of them. */
  follow({ blocks }: { readonly blocks: readonly BranchedBlock[] }, lag = 0): void {
    const next = blocks.slice(0, blocks.length - lag);
    const added = next.filter((block) => !this.#known.has(block.hash));
    this.#setBlocks(next, added);
  }

  onBlocks(listener: (blocks: readonly FakeBlock[]) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** The methods of a node that has this chain. It returns replaced blocks by hash. */
  handlers(): Record<string, (params: readonly unknown[]) => unknown> {
    const logsOf = ({ receipt }: BranchedBlock): readonly unknown[] => receipt.logs as readonly unknown[];
    const format = (block: BranchedBlock | undefined, isFull: unknown) =>
      (isFull === true ? block?.fullJson : block?.json) ?? null;
    const byTransaction = (hash: unknown) => this.#blocks.find(({ transaction }) => transaction === hash);
    return {
      eth_getBlockByNumber: ([tag, isFull]) => format(this.#at(tag), isFull),
      eth_getBlockByHash: ([hash, isFull]) => format(this.byHash(hash), isFull),
      eth_getBalance: ([, block]) => this.#blockOf(block).balance,
      eth_getBlockReceipts: ([block]) => [this.#blockOf(block).receipt],
      eth_getTransactionReceipt: ([hash]) => byTransaction(hash)?.receipt ?? null,
      eth_getTransactionByHash: ([hash]) => {
        const [transaction] = (byTransaction(hash)?.fullJson.transactions ?? []) as readonly unknown[];
        return transaction ?? null;
      },
      eth_getLogs: ([filter]) => {
        const { fromBlock, toBlock, blockHash } = Object(filter);
        if (blockHash !== undefined) {
          return logsOf(this.#blockOf(blockHash));
        }
        return this.#blocks.slice(Number(this.#blockOf(fromBlock).number), Number(toBlock) + 1).flatMap(logsOf);
      },
    };
  }

  #setBlocks(blocks: readonly BranchedBlock[], added: readonly BranchedBlock[]): void {
    this.#blocks = blocks;
    for (const block of added) {
      this.#known.set(block.hash, block);
    }
    for (const listener of added.length === 0 ? [] : this.#listeners) {
      listener(added);
    }
  }

  #at(tag: unknown): BranchedBlock | undefined {
    const depths: Readonly<Record<string, number>> = { latest: 0, safe: SAFE_DEPTH, finalized: FINALIZED_DEPTH };
    const depth = depths[String(tag)];
    return this.#blocks[depth === undefined ? Number(tag) : Math.max(0, this.#blocks.length - 1 - depth)];
  }

  #blockOf(parameter: unknown): BranchedBlock {
    const id = typeof parameter === "object" && parameter !== null ? Reflect.get(parameter, "blockHash") : parameter;
    const isHash = typeof id === "string" && id.length === word("").length;
    const block = isHash ? this.#known.get(id) : this.#at(id ?? "latest");
    if (block === undefined) {
      throw new FakeError(-32_000, "header not found");
    }
    return block;
  }
}

/** Returns whether a text contains anything of an invented block. */
export const isForgedText = (text: string): boolean => text.includes(FORGED);
