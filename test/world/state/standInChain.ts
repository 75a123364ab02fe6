import type { BlockHeader } from "../../../src/ethereum/blockHeader.ts";
import { createBloom } from "../../../src/ethereum/bloom.ts";
import type { Address, Hash } from "../../../src/ethereum/hex.ts";
import { keccak256Hex } from "../../../src/ethereum/keccak.ts";
import { parseTransaction } from "../../../src/ethereum/parseTransaction.ts";
import type { GasRefund } from "../../../src/ethereum/postExec.ts";
import type { Receipt } from "../../../src/ethereum/receipt.ts";
import { encodeNumber } from "../../../src/ethereum/rlp.ts";
import { DEPOSIT_TYPE, type Transaction } from "../../../src/ethereum/transaction.ts";
import { addressOf } from "../../support/builders/stateModel.ts";
import { ChainRecord } from "../chain/chainRecord.ts";
import { CANCUN_FIELDS, type SealedBlock, sealBlock, type Withdrawal } from "../chain/sealedBlock.ts";
import { createBlockAccessList } from "./blockAccessList.ts";
import { BlockDraft } from "./blockDraft.ts";
import { BranchedValues } from "./branchedValues.ts";
import { formatCallTrace, formatDiffTrace } from "./diffTrace.ts";
import { StandInCalls } from "./standInCalls.ts";
import { StateValuesReader } from "./stateKeys.ts";
import { StateRoots } from "./stateRoots.ts";

export type StandInFork = "shanghai" | "prague" | "amsterdam";

export interface StandInTransaction {
  readonly sender: Address;
  /** The EIP-2718 bytes. Nothing checks the signature. */
  readonly raw: Uint8Array;
}

/** The content of a block besides its state. */
export interface BlockContent {
  readonly transactions?: readonly StandInTransaction[];
  readonly withdrawals?: readonly Withdrawal[];
  readonly feeRecipient?: Address;
  /** Default: later than that of any other block. */
  readonly timestamp?: bigint;
  /** Undefined: each transaction costs 21,000 gas and has no logs, and the root is that of no receipts. */
  readonly execution?: Pick<BlockHeader, "gasUsed" | "receiptsRoot" | "logsBloom"> | undefined;
  /** The gas that a post-exec transaction at the end gives back (Lagoon). The block then has receipts. */
  readonly refunds?: readonly GasRefund[] | undefined;
  /** Whether traces list the post-exec transaction. */
  readonly tracesPostExec?: boolean | undefined;
}

export interface StandInBlock extends SealedBlock {
  readonly parent: StandInBlock | undefined;
}

export const CHAIN_ID = 1_337n;

const GAS = 21_000n;
const FEE_RECIPIENT = addressOf(100);
const FIRST_SECONDS = 1_700_000_002n;
const SECONDS_PER_BLOCK = 2n;

/** Returns the receipts of transactions without logs in a block that gives back gas. */
export const refundedReceipts = (
  parsed: readonly Transaction[],
  number: bigint,
  refunds: readonly GasRefund[],
): readonly Receipt[] => {
  const byIndex = new Map(refunds.map(({ index, gasRefund }) => [index, gasRefund]));
  // Each block after the first has one deposit, of one sender.
  const ofDeposit = { depositNonce: number - 1n, depositReceiptVersion: 1n };
  let cumulativeGasUsed = 0n;
  return parsed.map(({ type }, index): Receipt => {
    cumulativeGasUsed += GAS - (byIndex.get(index) ?? 0n);
    const receipt = { type, status: true, cumulativeGasUsed, logs: [], logsBloom: createBloom() };
    return type === DEPOSIT_TYPE ? { ...receipt, ...ofDeposit } : receipt;
  });
};

/** What a block gets besides its content. */
interface SealedParts extends Pick<SealedBlock, "accessList"> {
  readonly stateRoot: Hash | undefined;
  readonly tracesOf: (hashes: readonly Hash[]) => Required<Pick<SealedBlock, "trace" | "callTrace">>;
}

/** A chain of blocks with real headers and transactions, and with real state after each block, on all its branches. */
export class StandInChain extends ChainRecord<StandInBlock> {
  readonly fork: StandInFork;
  /** Deeper than reorganisations. */
  readonly finality = { safe: 100, finalized: 200 };
  readonly values = new BranchedValues();
  readonly execution: StandInCalls;
  readonly #roots: StateRoots | undefined;

  /** `hasRoots`: the header of each block has its state root, so that nodes have proofs of the newest blocks. */
  constructor(fork: StandInFork, hasRoots = false) {
    super(Number(CHAIN_ID));
    this.fork = fork;
    this.execution = new StandInCalls(this);
    this.#roots = hasRoots ? new StateRoots() : undefined;
  }

  get height(): number {
    return this.#tip?.number ?? -1;
  }

  /** Returns the state after a block, of any branch. */
  stateAt(hash: Hash): StateValuesReader {
    return new StateValuesReader((key) => this.values.get(hash, key));
  }

  /** Begins a block on the head. */
  draft(): BlockDraft {
    const parent = this.#tip?.hash;
    return new BlockDraft((key) => (parent === undefined ? undefined : this.values.get(parent, key)));
  }

  /** Seals a draft. Its phases: before the transactions, each transaction, after them. */
  seal(draft: BlockDraft, content: BlockContent = {}): StandInBlock {
    const { writes, phases, frames } = draft;
    if (phases.length !== (content.transactions ?? []).length + 2) {
      throw new Error("a block needs a phase for each transaction, one before and one after them");
    }
    const accessList = this.fork === "amsterdam" ? createBlockAccessList(phases) : undefined;
    const state = this.#roots?.next(this.#tip?.hash, draft);
    const block = this.#createBlock(content, {
      ...{ accessList, stateRoot: state?.root },
      tracesOf: (hashes) => ({
        trace: (form) => formatDiffTrace(phases.slice(1, -1), hashes, form),
        callTrace: formatCallTrace(frames.slice(1, -1), hashes),
      }),
    });
    state?.keep(block.hash);
    this.values.add({ ...block, parentHash: block.header.parentHash }, writes);
    this.blocks.set(block.hash, block);
    this.holdTransactions(block);
    this.#moveTo(block);
    this.announce(block);
    return block;
  }

  /** Seals a block that writes this before its transactions: access lists have these writes, and traces do not. */
  mine(
    balances: readonly (readonly [Address, bigint])[] = [],
    write: (draft: BlockDraft) => void = () => undefined,
  ): StandInBlock {
    const draft = this.draft();
    for (const [address, balance] of balances) {
      draft.setBalance(address, balance);
    }
    write(draft);
    draft.endPhase();
    draft.endPhase();
    return this.seal(draft);
  }

  /** Removes the newest blocks from the canonical chain. They can still be read by hash. */
  rewind(depth: number): void {
    const block = this.at(this.height - depth);
    if (block === undefined) {
      throw new Error("the chain has too few blocks");
    }
    this.#moveTo(block);
  }

  get #tip(): StandInBlock | undefined {
    return this.heads.at(-1)?.block;
  }

  #moveTo(block: StandInBlock): void {
    this.values.setHead(block.hash);
    this.heads.push({ atMs: performance.now(), block });
  }

  #createBlock(
    { transactions: own = [], withdrawals = [], feeRecipient = FEE_RECIPIENT, ...content }: BlockContent,
    { accessList, stateRoot, tracesOf }: SealedParts,
  ): StandInBlock {
    const { execution, refunds, tracesPostExec } = content;
    const timestamp = content.timestamp ?? FIRST_SECONDS + SECONDS_PER_BLOCK * BigInt(this.blocks.size);
    const parsed = own.map(({ raw }) => parseTransaction(raw));
    const parent = this.#tip;
    const number = BigInt(this.height + 1);
    const sealed = sealBlock({
      ...{ parent, refunds, withdrawals },
      own: parsed.map((transaction, index) => ({ transaction, sender: own[index]?.sender ?? feeRecipient })),
      receipts: refunds && refundedReceipts(parsed, number, refunds),
      header: {
        ...{ miner: feeRecipient, timestamp, extraData: "0x" },
        // Without a real root, it is unique, so that blocks of two branches differ.
        stateRoot: stateRoot ?? keccak256Hex(encodeNumber(this.blocks.size)),
        ...(refunds === undefined && { gasUsed: BigInt(own.length) * GAS }),
        ...execution,
        ...(this.fork !== "shanghai" && CANCUN_FIELDS),
        ...(accessList && { blockAccessListHash: accessList.hash, slotNumber: number }),
      },
    });
    const { hash, hashes } = sealed;
    const roots = this.#roots;
    const traces = tracesOf(hashes.slice(0, own.length));
    const traced = tracesPostExec ? hashes.slice(own.length) : [];
    return {
      ...{ ...sealed, parent, accessList, state: this.stateAt(hash) },
      proofOf: roots && ((address, slots) => roots.proofAt(hash, address, slots as readonly Hash[])),
      witness: roots && (() => parent && roots.witnessOf(parent.hash, hash)),
      trace: (form) => [...traces.trace(form), ...traced.map((txHash) => ({ txHash, result: { pre: {}, post: {} } }))],
      callTrace: [
        ...traces.callTrace,
        // A node that executes no such transaction.
        ...traced.map((txHash) => ({ txHash, error: "transaction type not supported" })),
      ],
    };
  }
}
