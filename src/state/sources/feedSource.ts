import type { BlockId } from "../../core/heads.ts";
import type { AccountChange, StateChanges } from "../../core/stateReader.ts";
import { EMPTY_CODE_HASH } from "../../ethereum/keccak.ts";
import { mergeChanges } from "../../evm/reads/writtenState.ts";
import type { Awaitable } from "../../jsonrpc/call.ts";
import { packWrites } from "../store/packedWrites.ts";
import type { AccountWrites, WriteSet, WriteSetFailure, WriteSetSource } from "../writeSet.ts";
import { orLate } from "./sourceNodes.ts";
import type { Witness } from "./witness.ts";

/** The writes of a block's parts, system writes included, oldest first. Or why they are not known. */
export type BlockChanges = readonly StateChanges[] | WriteSetFailure;

/** A sealed block that equals the execution of the feed's messages. */
export interface ExecutedBlock {
  readonly block: BlockId;
  /** An execution that missed its deadline may still run. */
  readonly changes: Promise<BlockChanges>;
}

export type FindExecuted = (block: BlockId, signal: AbortSignal) => Awaitable<ExecutedBlock | WriteSetFailure>;

/** The longest wait for an execution that missed its deadline. The blocks after it wait too, and their reads are the nodes'. */
const MAX_EXECUTION_MS = 2_000;

/**
 * Write sets of sealed blocks that the feed brought before, and that were executed here. Gas, bloom and receipts root of each
 * block are checked against its header. They do not prove storage.
 */
export class FeedSource implements WriteSetSource {
  readonly kind = "feed";
  readonly unitsPerBlock = 0;
  readonly #find: FindExecuted;
  readonly #witness: Witness | undefined;

  /** `witness`: proves the write sets. */
  constructor(find: FindExecuted, witness?: Witness) {
    this.#find = find;
    this.#witness = witness;
  }

  read(block: BlockId, signal: AbortSignal): Promise<WriteSet | WriteSetFailure> {
    const read = () => this.#read(block, signal);
    return this.#witness === undefined ? read() : this.#witness.prove(this, block, signal, read);
  }

  async #read(block: BlockId, signal: AbortSignal): Promise<WriteSet | WriteSetFailure> {
    const executed = await this.#find(block, signal);
    const changes =
      typeof executed === "string"
        ? executed
        : await orLate(executed.changes, { deadlineMs: performance.now() + MAX_EXECUTION_MS, signal });
    return typeof changes === "string" ? changes : { block, packed: packChanges(changes), grade: "checked" };
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
