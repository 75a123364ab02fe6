import type { CallScope } from "../../core/context.ts";
import type { BlockId } from "../../core/heads.ts";
import type { AccountChange, StateChanges } from "../../core/stateReader.ts";
import { EMPTY_CODE_HASH } from "../../ethereum/keccak.ts";
import { mergeChanges } from "../../evm/reads/writtenState.ts";
import type { Awaitable } from "../../jsonrpc/call.ts";
import { SlidingSum } from "../../limits/slidingSum.ts";
import type { StateCost } from "../stateCost.ts";
import { packWrites } from "../store/packedWrites.ts";
import type { AccountWrites, WriteSet, WriteSetFailure, WriteSetSource } from "../writeSet.ts";
import type { BlockContent } from "./blockContent.ts";
import { orLate, scopeWithin } from "./sourceNodes.ts";
import type { WriteSetThread } from "./writeSetThread.ts";

/** The writes of a block's parts, system writes included, oldest first. Or why they are not known. */
export type BlockChanges = readonly StateChanges[] | WriteSetFailure;

/** A sealed block that is executed here, whole or in part. */
export interface ExecutedBlock {
  readonly block: BlockId;
  /**
   * A promise: the whole block is executed, or its execution still runs. A function: it executes the transactions that are not,
   * and may reject.
   */
  readonly changes: Promise<BlockChanges> | ((content: BlockContent) => Promise<BlockChanges>);
}

export interface ExecutedSourceOptions {
  /** Who executes: the feed's messages before the block is sealed, or the source itself. */
  readonly kind: "feed" | "execution";
  readonly find: (block: BlockId, signal: AbortSignal) => Awaitable<ExecutedBlock | WriteSetFailure>;
  readonly thread: Pick<WriteSetThread, "run">;
  /** Returns the JSON text of the block with whole transactions. Rejects if no node has it. */
  readonly readBlock: (block: BlockId, scope: CallScope) => Promise<Uint8Array>;
  readonly cost: Pick<StateCost, "unitsOf" | "shouldFollow" | "spend">;
  readonly blockTimeMs: () => number;
  readonly nowMs: () => number;
}

/** The estimated number of values that an execution reads from nodes: of the last transactions of a block, or of all. */
const VALUES_READ = { feed: 5, execution: 20 };
/** The share of the feed's blocks that it brought in part is that of this period. */
const PERIOD_MS = 60_000;
/** The longest wait for an execution that missed its deadline. The blocks after it wait too, and their reads are the nodes'. */
const MAX_EXECUTION_MS = 2_000;

/**
 * Write sets of blocks that are executed here. Gas, bloom and receipts root of each block are checked against its header. They do
 * not prove storage. A block that is not executed yet, or only in part, is read, and the other transactions are executed.
 */
export class ExecutedSource implements WriteSetSource {
  readonly kind: "feed" | "execution";
  readonly #options: ExecutedSourceOptions;
  readonly #blocks = new SlidingSum(PERIOD_MS);
  readonly #completed = new SlidingSum(PERIOD_MS);
  #turn: Promise<unknown> = Promise.resolve();

  constructor(options: ExecutedSourceOptions) {
    this.#options = options;
    this.kind = options.kind;
  }

  /** Most blocks of the feed are executed whole. */
  get unitsPerBlock(): number {
    return this.kind === "feed" ? 0 : this.#units;
  }

  read(block: BlockId, signal: AbortSignal): Promise<WriteSet | WriteSetFailure> {
    if (this.kind === "feed") {
      return this.#read(block, signal);
    }
    // Each block is executed on the one before.
    const reading = this.#turn.then(() => this.#read(block, signal));
    this.#turn = reading.catch(() => undefined);
    return reading;
  }

  async #read(block: BlockId, signal: AbortSignal): Promise<WriteSet | WriteSetFailure> {
    const { find, nowMs } = this.#options;
    this.#blocks.add(1, nowMs());
    const executed = await find(block, signal);
    const changes = typeof executed === "string" ? executed : await this.#changesOf(executed, signal);
    return typeof changes === "string" ? changes : { block, packed: packChanges(changes) };
  }

  #changesOf({ block, changes }: ExecutedBlock, signal: AbortSignal): Awaitable<BlockChanges> {
    if (typeof changes !== "function") {
      return orLate(changes, { deadlineMs: performance.now() + MAX_EXECUTION_MS, signal });
    }
    return this.#pays() ? this.#execute(block, changes, signal).catch(() => "error" as const) : "incomplete";
  }

  get #units(): number {
    const { unitsOf } = this.#options.cost;
    return unitsOf("eth_getBlockByHash") + VALUES_READ[this.kind] * unitsOf("eth_getStorageAt");
  }

  /** Whether the reads of clients pay for the rest of as many blocks of the feed as in the last period. Spends the units then. */
  #pays(): boolean {
    if (this.kind === "execution") {
      return true;
    }
    const { cost, nowMs } = this.#options;
    const now = nowMs();
    const share = (this.#completed.total(now) + 1) / Math.max(1, this.#blocks.total(now));
    const pays = cost.shouldFollow(this.#units * Math.min(1, share));
    if (pays) {
      this.#completed.add(1, now);
      cost.spend("writeSets", this.#units);
    }
    return pays;
  }

  /** Reads the block, checks it against its hash, and executes what is not executed yet. */
  async #execute(
    block: BlockId,
    execute: Exclude<ExecutedBlock["changes"], Promise<unknown>>,
    signal: AbortSignal,
  ): Promise<BlockChanges> {
    const { readBlock, thread, blockTimeMs } = this.#options;
    const scope = scopeWithin(blockTimeMs(), signal);
    const body = await readBlock(block, scope);
    const output = await thread.run({ kind: "content", block, body }, scope);
    if (output.kind === "content") {
      return orLate(execute(output.content), scope);
    }
    return output.kind === "failed" ? output.reason : "error";
  }
}

/** Packs the writes of consecutive executions, oldest first. An account that was only read may be among them, with its value. */
const packChanges = (executions: Exclude<BlockChanges, string>): Uint8Array =>
  packWrites(new Map([...mergeChanges(executions)].map(([address, change]) => [address, writesOfChange(change)])));

const NOTHING = new Uint8Array(0);

const writesOfChange = ({ account, code, isCleared, slots }: AccountChange): AccountWrites => {
  const codeHash = account?.codeHash ?? EMPTY_CODE_HASH;
  // Without new bytes, the account was destroyed or created without a code.
  const isCodeWritten = code !== undefined || account === undefined || isCleared;
  return {
    balance: account?.balance ?? 0n,
    nonce: account?.nonce ?? 0n,
    ...(isCodeWritten && { code: code ?? (codeHash === EMPTY_CODE_HASH ? NOTHING : "unknown"), codeHash }),
    ...(isCleared && { otherSlots: "cleared" }),
    slots,
  };
};
