import type { BlockId } from "../../core/heads.ts";
import type { Address, Hash } from "../../ethereum/hex.ts";
import type { BlobSchedule } from "../../ethereum/rules.ts";
import type { Fields } from "../../json/jsonBytes.ts";
import { WorkerPoolError } from "../../threads/poolLane.ts";
import { WorkerPool } from "../../threads/workerPool.ts";
import type { WorkerEntry } from "../../threads/workerThread.ts";
import type { WriteSetFailure } from "../writeSet.ts";

/** Proves writes that somebody claims. Plain data. */
export interface WitnessJob {
  readonly kind: "witness";
  readonly block: BlockId;
  /** The headers of the block and of its parent, with their hashes. */
  readonly header: Fields;
  readonly parent: Fields;
  /** The claim: see packWrites. */
  readonly packed: Uint8Array;
  /** JSON text of the block's execution witness. */
  readonly witness: Uint8Array;
  /** JSON texts of proofs of accounts at the block, by address. */
  readonly proofs: readonly (readonly [Address, Uint8Array])[];
}

/** Why writes are not proven. `refused`: they do not give the state root. `missing`: the witness lacks a node. */
export type UnprovenReason = "refused" | "missing" | "malformed";

/** A job that turns a node's responses into writes. Plain data. */
export type WriteSetJob =
  | {
      readonly kind: "trace";
      readonly block: BlockId;
      /** JSON text of the block with whole transactions. */
      readonly body: Uint8Array;
      /** JSON text of the block's diff trace. */
      readonly trace: Uint8Array;
      /** JSON text of the block's call trace. Undefined: it was not asked yet. */
      readonly calls?: Uint8Array | undefined;
      /** The price of blobs. Undefined if it is not known. */
      readonly blobs?: BlobSchedule | undefined;
      /** System contracts of the chain besides those that all chains share. */
      readonly contracts: readonly Address[];
    }
  | { readonly kind: "codeHashes"; readonly trace: Uint8Array }
  | {
      readonly kind: "accessList";
      /** JSON text of the block access list. */
      readonly list: Uint8Array;
      /** The block's header, with its hash. */
      readonly header: Readonly<Record<string, unknown>>;
      readonly block: BlockId;
    }
  | WitnessJob;

export type WriteSetJobOutput =
  | {
      readonly kind: "written";
      /** See packWrites. */
      readonly packed: Uint8Array;
      /** The new codes of a trace. Absent if it has none. */
      readonly codes?: TracedCodes;
    }
  | {
      /** The trace may leave out accounts, and its calls are missing. */
      readonly kind: "unlisted";
    }
  | { readonly kind: "codeHashes"; readonly codes: TracedCodes | undefined }
  | {
      /** Exactly these writes are those of the block. */
      readonly kind: "proven";
      readonly packed: Uint8Array;
    }
  | {
      /** Proofs of these accounts are needed. */
      readonly kind: "open";
      readonly addresses: readonly Address[];
    }
  | { readonly kind: "unproven"; readonly reason: UnprovenReason }
  | { readonly kind: "failed"; readonly reason: WriteSetFailure };

/** The hashes of the codes that a trace has as new, by account. "missing": the tracer does not give hashes. */
export type TracedCodes = "missing" | readonly (readonly [Address, Hash])[];

export interface WriteSetThreadOptions {
  /** The entry of `writeSetTask`. */
  readonly entry: WorkerEntry;
  readonly onFailure: (error: Error) => void;
}

/** The limits of one job. */
export interface JobLimits {
  readonly deadlineMs: number;
  readonly signal: AbortSignal;
}

const MAX_WAITING = 64;
const MAX_HEAP_MIB = 512;

/** A thread that turns responses of nodes into write sets, for all chains. It starts with the first read. */
export class WriteSetThread {
  readonly #pool: WorkerPool;

  constructor({ entry, onFailure }: WriteSetThreadOptions) {
    this.#pool = new WorkerPool({
      entry,
      size: 1,
      maxWaiting: MAX_WAITING,
      limits: { maxOldGenerationSizeMb: MAX_HEAP_MIB },
      onFailure,
    });
  }

  /** Starts the thread, so that it is there when a node has answered. */
  start(): void {
    this.#pool.start();
  }

  /** Never rejects. `deadlineMs` is on the clock of `performance`. */
  async run(job: WriteSetJob, limits: JobLimits): Promise<WriteSetJobOutput> {
    const { deadlineMs, signal } = limits;
    try {
      const output = await this.#pool.run({
        input: job,
        timeoutMs: Math.max(0, deadlineMs - performance.now()),
        signal,
      });
      return output as WriteSetJobOutput;
    } catch (error) {
      const hasFailed = error instanceof WorkerPoolError && error.reason === "failed";
      return { kind: "failed", reason: hasFailed ? "error" : "late" };
    }
  }

  close(): Promise<void> {
    return this.#pool.close();
  }
}
