import { crc32 } from "node:zlib";
import { LRUCache } from "lru-cache";
import { type Grade, isAtLeast } from "../../core/grade.ts";
import type { BlockId, Heads } from "../../core/heads.ts";
import type { Telemetry } from "../../telemetry/telemetry.ts";
import type { StateFollower } from "../stateFollower.ts";
import type { Repetition } from "../store/usedValues.ts";
import type { ValueStore } from "../store/valueStore.ts";
import { type CallResult, gradeAt, isValidAt, resultHeader } from "./callResult.ts";
import type { BlockCall, CallMethod } from "./callRun.ts";
import type { StoredCall } from "./storedCall.ts";

/** The answer to one call, or the facts that decide whether to learn one. */
export interface CallEntry {
  readonly method: CallMethod;
  /** The newest block of a request. */
  block: bigint;
  answer: CallResult | undefined;
  /** The newest block at which the answer is known to be valid. */
  validAt: BlockId | undefined;
  /** The execution of the call at a block, while it runs. */
  execution: { readonly block: BlockId; readonly answer: Promise<CallResult | undefined> } | undefined;
  /** The newest block at which it could not be learned, or not be proven for a client. */
  refusedAt: bigint;
  /** Not learned before this time. */
  retryAtMs: number;
  refusals: number;
  /** The values of the answer count as used until this time. */
  usedUntilMs: number;
}

export interface CallTableOptions {
  readonly values: Pick<
    ValueStore,
    "get" | "isChecked" | "isApplied" | "gradeSince" | "isWrittenSince" | "maxReadable" | "used"
  >;
  readonly follower: Pick<StateFollower, "generation">;
  readonly maxBytes: number;
  readonly nowMs?: () => number;
  readonly chain: string;
  readonly telemetry: Pick<Telemetry, "metrics">;
  /** Called when all answers are dropped. */
  onCleared(): void;
}

const ENTRY_BYTES = 400;
const KEY_BYTES = 250;
const BYTES_OF_CHARACTER = 2;
/** A call that cannot be learned is tried again after 30 s, then a minute and so on, up to an hour. */
const FIRST_RETRY_MS = 30_000;
const MAX_RETRY_MS = 3_600_000;
/** A call whose proofs were too expensive is tried again after this time. A minute of learning may have room then. */
const EXPENSIVE_RETRY_MS = 5_000;
/** Write sets are known of the newest blocks only. An older answer is moved to the newest block at which it is valid. */
const MOVE_SHARE = 2n;
const USED_MS = 30_000;

/** The answer to a call that must be executed before it has another one: at a block that no chain has. */
const ENDED = {
  body: new Uint8Array(0),
  block: { number: -1n, hash: "0x" },
  header: { feeRecipient: undefined, gasLimit: undefined },
} as const;

const bytesOf = ({ answer }: CallEntry, key: string): number => {
  const keys = answer === undefined ? 0 : answer.reads.keys.length + answer.reads.addresses.size;
  return ENTRY_BYTES + BYTES_OF_CHARACTER * key.length + KEY_BYTES * keys + (answer?.body.length ?? 0);
};

const createEntry = (method: CallMethod, { number }: BlockId): CallEntry => ({
  method,
  block: number,
  answer: undefined,
  validAt: undefined,
  execution: undefined,
  refusedAt: -1n,
  retryAtMs: Number.NEGATIVE_INFINITY,
  refusals: 0,
  usedUntilMs: 0,
});

/**
 * Calls with their answers, by the canonical text of method and parameters. The least used ones are evicted.
 * A call gets an entry when it is requested at a second block, of any replica, or by a client that requires a proof.
 */
export class CallTable {
  readonly #options: CallTableOptions;
  readonly #entries: LRUCache<string, CallEntry>;
  readonly #nowMs: () => number;
  /** The calls without an entry. Created with the first call. */
  #seen: SeenCalls | undefined;

  constructor(options: CallTableOptions) {
    this.#options = options;
    this.#nowMs = options.nowMs ?? (() => performance.now());
    this.#entries = new LRUCache({ maxSize: Math.max(1, options.maxBytes), sizeCalculation: bytesOf });
  }

  get(key: string): CallEntry | undefined {
    return this.#entries.get(key);
  }

  /** Records a request. Returns whether it repeats one of an older block. */
  record(key: string, entry: CallEntry | undefined, method: CallMethod, block: BlockId): Repetition {
    if (entry === undefined) {
      this.#seen ??= new SeenCalls();
      const repetition = this.#seen.record(key, block);
      if (repetition === "repeated") {
        this.#entries.set(key, createEntry(method, block));
      }
      return repetition;
    }
    if (entry.block >= block.number) {
      return "sameBlock";
    }
    entry.block = block.number;
    return "repeated";
  }

  /** Gives a call an entry at its first request. */
  begin({ key, method, block }: BlockCall): void {
    if (!this.#entries.has(key)) {
      this.#entries.set(key, createEntry(method, block));
    }
  }

  /** Stores an answer. Does nothing if the call was evicted, or if its answer is of a later block. */
  store(
    { key, method, needs = "stated" }: Omit<BlockCall, "block"> & { readonly needs?: Grade },
    answer: CallResult,
    event: "learned" | "recomputed",
  ): void {
    this.#countEvent(method, event);
    const entry = this.#entries.get(key);
    if (entry !== undefined && (entry.answer?.block.number ?? 0n) <= answer.block.number) {
      // The cache weighs an entry only when it is set.
      const stored = { ...entry, answer, validAt: answer.block, execution: undefined, refusals: 0 };
      if (!isAtLeast(answer.grade, needs)) {
        stored.refusedAt = answer.block.number;
      }
      this.#entries.set(key, stored);
      this.#use(stored, answer);
    }
  }

  #countEvent(method: CallMethod, event: "reused" | "learned" | "recomputed" | Refusal): void {
    const { chain, telemetry } = this.#options;
    telemetry.metrics.stateAnswers.inc({ chain, method, event });
  }

  /** Drops all answers. */
  clear(): void {
    this.#entries.clear();
    this.#seen = undefined;
    this.#options.onCleared();
  }

  /** Records that an answer could not be learned. */
  refuse({ key, method, block, needs }: BlockCall & { readonly needs: Grade }, refusal: Refusal): void {
    this.#countEvent(method, refusal);
    const entry = this.#entries.get(key);
    if (entry === undefined) {
      return;
    }
    entry.refusedAt = block.number;
    // A node that lies must not keep a client from a proof for long.
    const isChance = refusal === "budget" || refusal === "late" || (refusal === "mismatch" && needs === "proven");
    if (!isChance) {
      entry.retryAtMs = this.#nowMs() + Math.min(FIRST_RETRY_MS * 2 ** entry.refusals, MAX_RETRY_MS);
      entry.refusals++;
    } else if (refusal === "budget" && needs === "proven") {
      entry.retryAtMs = Math.max(entry.retryAtMs, this.#nowMs() + EXPENSIVE_RETRY_MS);
    }
  }

  /** Whether to learn the result of a call at this block, as far as earlier tries say. */
  mayLearn({ refusedAt, retryAtMs }: CallEntry, { number }: BlockId): boolean {
    return number > refusedAt && this.#nowMs() >= retryAtMs;
  }

  /** Returns the answer if it is that of the block. */
  findValid(entry: CallEntry, block: BlockId, heads: Heads): CallResult | undefined {
    const { values, follower } = this.#options;
    const { answer } = entry;
    if (answer === undefined || answer.generation !== follower.generation) {
      return undefined;
    }
    if (entry.validAt?.hash === block.hash) {
      return answer;
    }
    if (!isValidAt(answer, block, values, heads)) {
      return undefined;
    }
    if (block.number > (entry.validAt?.number ?? -1n)) {
      this.#countEvent(entry.method, "reused");
      entry.validAt = block;
      this.#use(entry, answer);
      this.#move(entry, answer, heads);
    }
    return answer;
  }

  /** Lists the calls that can be executed again at a later block, the most used first. */
  *calls(): Generator<StoredCall | undefined, void> {
    const { follower } = this.#options;
    // Requests change the order meanwhile.
    for (const key of [...this.#entries.keys()]) {
      const { answer, method } = this.#entries.peek(key) ?? {};
      const isRepeatable = answer?.isRepeatable === true && answer.generation === follower.generation;
      yield isRepeatable && method !== undefined ? { key, method, node: answer.node, reads: answer.reads } : undefined;
    }
  }

  /** Adds a call of an earlier process or chain, whose answer has ended. A call that has an entry stays. */
  restore({ key, method, node, reads }: StoredCall): void {
    if (!this.#entries.has(key)) {
      const { generation } = this.#options.follower;
      const answer: CallResult = { ...ENDED, node, reads, generation, isRepeatable: true, grade: "stated" };
      this.#entries.set(key, { ...createEntry(method, ENDED.block), answer });
    }
  }

  #move(entry: CallEntry, answer: CallResult, heads: Heads): void {
    const { validAt } = entry;
    const header = validAt && resultHeader(heads.header(validAt.number));
    const { values } = this.#options;
    if (validAt && header && MOVE_SHARE * (validAt.number - answer.block.number) > values.maxReadable) {
      entry.answer = { ...answer, block: validAt, header, grade: gradeAt(answer, validAt, values) };
    }
  }

  #use(entry: CallEntry, { reads, block }: CallResult): void {
    const nowMs = this.#nowMs();
    if (nowMs < entry.usedUntilMs) {
      return;
    }
    entry.usedUntilMs = nowMs + USED_MS;
    // Audits compare the values on which results depend.
    for (const key of reads.keys) {
      this.#options.values.used.record(key, block.number);
    }
  }
}

/**
 * Why an answer was not learned. A label value of a metric.
 * `mismatch`: the execution here returns other bytes. `unknown`: a value could not be read, or there are too many.
 */
export type Refusal =
  | ("mismatch" | "failed" | "gas" | "defaults" | "unknown" | "forwarded")
  /** The values would cost more than learning may cost now. */
  | "budget"
  /** The block, or all values, are gone. */
  | "late";

/** Calls that share a place. A new one replaces the one with the oldest block. */
const WAYS = 4;
const SETS = 16_384;

/** Block numbers are compared by their low 32 bits: 27 years of blocks of 200 ms. */
const lowBits = (block: bigint): number => Number(BigInt.asUintN(32, block));

/**
 * Remembers the newest block of about 65,536 calls in 512 kB, by the hash of their text. Most calls are requested once, and
 * an object for each would outlive the young generation of the heap. Two calls with one hash count as one, which
 * only lets a call be learned at its first request.
 */
export class SeenCalls {
  readonly #hashes = new Uint32Array(WAYS * SETS);
  readonly #blocks = new Uint32Array(WAYS * SETS);

  /** Records a request, and compares it with earlier ones of the same call. */
  record(key: string, { number }: BlockId): Repetition {
    const hash = crc32(key);
    const block = lowBits(number);
    const first = (hash % SETS) * WAYS;
    let oldest = first;
    for (let index = first; index < first + WAYS; index++) {
      if (this.#hashes[index] === hash) {
        return this.#repeat(index, block);
      }
      if ((this.#blocks[index] ?? 0) < (this.#blocks[oldest] ?? 0)) {
        oldest = index;
      }
    }
    this.#hashes[oldest] = hash;
    this.#blocks[oldest] = block;
    return "new";
  }

  #repeat(index: number, block: number): Repetition {
    if ((this.#blocks[index] ?? 0) >= block) {
      return "sameBlock";
    }
    this.#blocks[index] = block;
    return "repeated";
  }
}
