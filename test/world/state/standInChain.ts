import { type BlockHeader, EMPTY_REQUESTS_HASH, formatHeader, hashHeader } from "../../../src/ethereum/blockHeader.ts";
import { createBloom } from "../../../src/ethereum/bloom.ts";
import { formatTransaction } from "../../../src/ethereum/formatTransaction.ts";
import {
  type Address,
  type Data,
  formatData,
  formatQuantity,
  type Hash,
  parseData,
  ZERO_HASH,
} from "../../../src/ethereum/hex.ts";
import { keccak256Hex } from "../../../src/ethereum/keccak.ts";
import { orderedTrieRoot } from "../../../src/ethereum/orderedTrie.ts";
import { parseTransaction } from "../../../src/ethereum/parseTransaction.ts";
import {
  encodePostExec,
  formatPostExec,
  type GasRefund,
  POST_EXEC_TYPE,
  parsePostExec,
  refundsByIndex,
} from "../../../src/ethereum/postExec.ts";
import { encodeReceipt, type Receipt } from "../../../src/ethereum/receipt.ts";
import { encodeBytes, encodeList, encodeNumber } from "../../../src/ethereum/rlp.ts";
import { DEPOSIT_TYPE, type Transaction } from "../../../src/ethereum/transaction.ts";
import type { ProofResponse } from "../../support/builders/provenState.ts";
import { type BlockAccessList, createBlockAccessList } from "./blockAccessList.ts";
import { BlockDraft } from "./blockDraft.ts";
import { BranchedValues } from "./branchedValues.ts";
import { formatCallTrace, formatDiffTrace, type TraceForm } from "./diffTrace.ts";
import { StateValuesReader } from "./stateKeys.ts";
import { StateRoots } from "./stateRoots.ts";

export type StandInFork = "shanghai" | "prague" | "amsterdam";

export interface StandInTransaction {
  readonly sender: Address;
  /** The EIP-2718 bytes. Nothing checks the signature. */
  readonly raw: Uint8Array;
}

export interface StandInWithdrawal {
  readonly address: Address;
  /** In gwei. */
  readonly amount: bigint;
}

/** The content of a block besides its state. */
export interface BlockContent {
  readonly transactions: readonly StandInTransaction[];
  readonly withdrawals: readonly StandInWithdrawal[];
  readonly feeRecipient: Address;
  readonly timestamp: bigint;
  /** Undefined: each transaction costs 21,000 gas and has no logs, and the root is that of no receipts. */
  readonly execution?: Pick<BlockHeader, "gasUsed" | "receiptsRoot" | "logsBloom"> | undefined;
  /** The gas that a post-exec transaction at the end gives back (Lagoon). The block then has receipts. */
  readonly refunds?: readonly GasRefund[] | undefined;
  /** Whether traces list the post-exec transaction. */
  readonly tracesPostExec?: boolean | undefined;
}

export interface StandInBlock {
  readonly number: number;
  readonly hash: Hash;
  readonly parentHash: Hash;
  readonly header: BlockHeader;
  /** The block objects of the execution API: with hashes, and with whole transactions. */
  readonly json: object;
  readonly fullJson: object;
  readonly accessList: BlockAccessList | undefined;
  /** Undefined: the node has none. */
  readonly receipts: readonly Readonly<Record<string, unknown>>[] | undefined;
  trace(form: TraceForm): readonly unknown[];
  readonly callTrace: readonly unknown[];
}

export const CHAIN_ID = 1_337n;
export const BASE_FEE = 7n;
export const GAS_LIMIT = 30_000_000n;

const encodeWithdrawal = ({ address, amount }: StandInWithdrawal, index: number): Uint8Array =>
  encodeList([encodeNumber(index), encodeNumber(index), encodeBytes(parseData(address)), encodeNumber(amount)]);

const formatWithdrawal = ({ address, amount }: StandInWithdrawal, index: number) => ({
  index: formatQuantity(index),
  validatorIndex: formatQuantity(index),
  address,
  amount: formatQuantity(amount),
});

const GAS = 21_000n;

/** What ends a block that gives back gas: its post-exec transaction, unless it gives nothing back, and the receipts of all. */
export const endBlock = (parsed: readonly Transaction[], number: bigint, refunds: readonly GasRefund[]) => {
  const raw = refunds.length === 0 ? undefined : encodePostExec(number, refunds);
  const postExec = raw === undefined ? [] : [parsePostExec(raw)].flatMap((each) => each ?? []);
  const byIndex = refundsByIndex(postExec[0]);
  let gasUsed = 0n;
  const types = [...parsed.map(({ type }): number => type), ...postExec.map(() => POST_EXEC_TYPE)];
  // Each block after the first has one deposit, of one sender.
  const ofDeposit = { depositNonce: number - 1n, depositReceiptVersion: 1n };
  const receipts = types.map((type, index): Receipt => {
    gasUsed += type === POST_EXEC_TYPE ? 0n : GAS - (byIndex.get(index) ?? 0n);
    const receipt = { type, status: true, cumulativeGasUsed: gasUsed, logs: [], logsBloom: createBloom() };
    return type === DEPOSIT_TYPE ? { ...receipt, ...ofDeposit } : receipt;
  });
  return { postExec, byIndex, gasUsed, receipts };
};

const formatRefunded = (
  { type, cumulativeGasUsed, logsBloom, depositNonce, depositReceiptVersion }: Receipt,
  { byIndex, receipts }: ReturnType<typeof endBlock>,
  index: number,
) => {
  const gasUsed = cumulativeGasUsed - (receipts[index - 1]?.cumulativeGasUsed ?? 0n);
  const refund = byIndex.get(index);
  return {
    ...{ type: formatQuantity(type), status: "0x1", contractAddress: null, effectiveGasPrice: "0x8", logs: [] },
    ...{ cumulativeGasUsed: formatQuantity(cumulativeGasUsed), gasUsed: formatQuantity(gasUsed) },
    ...{ logsBloom: formatData(logsBloom), opGasRefund: refund === undefined ? null : formatQuantity(refund) },
    ...(depositNonce !== undefined && { depositNonce: formatQuantity(depositNonce) }),
    ...(depositReceiptVersion !== undefined && { depositReceiptVersion: formatQuantity(depositReceiptVersion) }),
  };
};

const CANCUN_FIELDS = { blobGasUsed: 0n, excessBlobGas: 0n, parentBeaconBlockRoot: ZERO_HASH } as const;

/** A chain of blocks with real headers and transactions, and with real state after each block, on all its branches. */
export class StandInChain {
  readonly fork: StandInFork;
  readonly values = new BranchedValues();
  readonly #blocks = new Map<Hash, StandInBlock>();
  readonly #listeners = new Set<(block: StandInBlock) => void>();
  readonly #roots: StateRoots | undefined;
  #canonical: StandInBlock[] = [];

  /** `hasRoots`: the header of each block has its state root, so that proofs of the newest blocks pass. */
  constructor(fork: StandInFork, hasRoots = false) {
    this.fork = fork;
    this.#roots = hasRoots ? new StateRoots() : undefined;
  }

  /** Answers eth_getProof after a block. Undefined: it has no proofs. */
  proofAt(hash: Hash, address: Address, slots: readonly Hash[]): ProofResponse | undefined {
    return this.#roots?.proofAt(hash, address, slots);
  }

  /** Returns the trie nodes of the parent's state that a block needs, the root first. Undefined: it has none. */
  witnessOf({ parentHash, hash }: Pick<StandInBlock, "parentHash" | "hash">): readonly Data[] | undefined {
    return this.#roots?.witnessOf(parentHash, hash);
  }

  get latest(): StandInBlock {
    const latest = this.#canonical.at(-1);
    if (latest === undefined) {
      throw new Error("the chain has no block");
    }
    return latest;
  }

  get height(): number {
    return this.#canonical.length - 1;
  }

  at(number: number): StandInBlock | undefined {
    return this.#canonical[number];
  }

  block(hash: unknown): StandInBlock | undefined {
    return this.#blocks.get(hash as Hash);
  }

  /** Returns the state after a block, of any branch. */
  stateAt(hash: Hash): StateValuesReader {
    return new StateValuesReader((key) => this.values.get(hash, key));
  }

  /** Begins a block on the head. */
  draft(): BlockDraft {
    const parent = this.#canonical.at(-1)?.hash;
    return new BlockDraft((key) => (parent === undefined ? undefined : this.values.get(parent, key)));
  }

  /** Seals a draft. Its phases: before the transactions, each transaction, after them. */
  seal(draft: BlockDraft, content: BlockContent): StandInBlock {
    const { writes, phases, frames } = draft;
    if (phases.length !== content.transactions.length + 2) {
      throw new Error("a block needs a phase for each transaction, one before and one after them");
    }
    const accessList = this.fork === "amsterdam" ? createBlockAccessList(phases) : undefined;
    const state = this.#roots?.next(this.#canonical.at(-1)?.hash, draft);
    const block = this.#createBlock(content, { accessList, stateRoot: state?.root }, (hashes) => ({
      trace: (form) => formatDiffTrace(phases.slice(1, -1), hashes, form),
      callTrace: formatCallTrace(frames.slice(1, -1), hashes),
    }));
    state?.keep(block.hash);
    this.values.add(block, writes);
    this.values.setHead(block.hash);
    this.#blocks.set(block.hash, block);
    this.#canonical.push(block);
    for (const listener of this.#listeners) {
      listener(block);
    }
    return block;
  }

  /** Removes the newest blocks from the canonical chain. They can still be read by hash. */
  rewind(depth: number): void {
    this.#canonical = this.#canonical.slice(0, -depth);
    this.values.setHead(this.latest.hash);
  }

  onBlock(listener: (block: StandInBlock) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #createBlock(
    { transactions: own, withdrawals, feeRecipient, timestamp, execution, refunds, tracesPostExec }: BlockContent,
    {
      accessList,
      stateRoot,
    }: { readonly accessList: BlockAccessList | undefined; readonly stateRoot: Hash | undefined },
    tracesOf: (hashes: readonly Hash[]) => Pick<StandInBlock, "trace" | "callTrace">,
  ): StandInBlock {
    const parsed = own.map(({ raw }) => parseTransaction(raw));
    const parent = this.#canonical.at(-1);
    const number = this.#canonical.length;
    const ending = refunds === undefined ? undefined : endBlock(parsed, BigInt(number), refunds);
    const header: BlockHeader = {
      parentHash: parent?.hash ?? ZERO_HASH,
      miner: feeRecipient,
      // Without a real root, it is unique, so that blocks of two branches differ.
      stateRoot: stateRoot ?? keccak256Hex(encodeNumber(this.#blocks.size)),
      transactionsRoot: orderedTrieRoot([...parsed, ...(ending?.postExec ?? [])].map(({ raw }) => raw)),
      receiptsRoot: orderedTrieRoot([]),
      logsBloom: createBloom(),
      number: BigInt(number),
      gasLimit: GAS_LIMIT,
      gasUsed: BigInt(own.length) * 21_000n,
      timestamp,
      extraData: "0x",
      mixHash: ZERO_HASH,
      baseFeePerGas: BASE_FEE,
      ...(ending && { gasUsed: ending.gasUsed, receiptsRoot: orderedTrieRoot(ending.receipts.map(encodeReceipt)) }),
      ...execution,
      withdrawalsRoot: orderedTrieRoot(withdrawals.map(encodeWithdrawal)),
      ...(this.fork === "shanghai" ? {} : { ...CANCUN_FIELDS, requestsHash: EMPTY_REQUESTS_HASH }),
      ...(accessList && { blockAccessListHash: accessList.hash, slotNumber: BigInt(this.#canonical.length) }),
    };
    const hash = hashHeader(header);
    const rest = {
      ...formatHeader(header, hash),
      size: "0x400",
      uncles: [],
      withdrawals: withdrawals.map(formatWithdrawal),
    };
    const place = { blockHash: hash, blockNumber: BigInt(number), baseFee: BASE_FEE };
    const senderAt = (index: number): Address => own[index]?.sender ?? feeRecipient;
    const transactions = [
      ...parsed.map((transaction, transactionIndex) =>
        formatTransaction(transaction, { ...place, transactionIndex, sender: senderAt(transactionIndex) }),
      ),
      ...(ending?.postExec ?? []).map((postExec) =>
        formatPostExec(postExec, { blockHash: hash, transactionIndex: parsed.length }),
      ),
    ];
    const traces = tracesOf(parsed.map((transaction) => transaction.hash));
    const traced = tracesPostExec ? (ending?.postExec ?? []).map((each) => each.hash) : [];
    return {
      ...{ number, hash, parentHash: header.parentHash, header, accessList },
      json: { ...rest, transactions: transactions.map((transaction) => transaction.hash) },
      fullJson: { ...rest, transactions },
      receipts: ending?.receipts.map((receipt, index) => ({
        ...formatRefunded(receipt, ending, index),
        ...{ blockHash: hash, blockNumber: formatQuantity(BigInt(number)) },
        ...{ transactionHash: transactions[index]?.hash, transactionIndex: formatQuantity(index) },
        ...{ from: transactions[index]?.from, to: transactions[index]?.to ?? null },
      })),
      trace: (form) => [...traces.trace(form), ...traced.map((txHash) => ({ txHash, result: { pre: {}, post: {} } }))],
      callTrace: [
        ...traces.callTrace,
        // A node that executes no such transaction.
        ...traced.map((txHash) => ({ txHash, error: "transaction type not supported" })),
      ],
    };
  }
}
