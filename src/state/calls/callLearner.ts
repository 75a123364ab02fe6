import { setTimeout as sleep } from "node:timers/promises";
import { type Grade, isAtLeast } from "../../core/grade.ts";
import type { BlockId } from "../../core/heads.ts";
import { affordable, type StateCost } from "../cost.ts";
import type { StateFollower } from "../stateFollower.ts";
import { keyName, type StateKey } from "../stateKey.ts";
import type { ValueStore } from "../store/valueStore.ts";
import type { ValueLoader } from "../valueLoader.ts";
import { resultWithin } from "../writeSetWaits.ts";
import type { CallResult } from "./callResult.ts";
import type { CallRunner, KnownCall, KnownRun } from "./callRunner.ts";
import type { CallTable, Refusal } from "./callTable.ts";
import type { NodeDefaultsCache } from "./nodeDefaults.ts";

export interface CallLearnerOptions {
  readonly values: Pick<ValueStore, "isReadable">;
  readonly follower: Pick<StateFollower, "untilApplied">;
  readonly cost: Pick<StateCost, "forLearning" | "spend">;
  readonly loader: Pick<ValueLoader, "load" | "unitsFor" | "mayProve">;
  readonly defaults: Pick<NodeDefaultsCache, "get">;
  readonly runner: Pick<CallRunner, "run">;
  readonly table: Pick<CallTable, "store" | "refuse">;
  readonly blockTimeMs: () => number;
}

/** Answers that are learned together, so that one bulk read has the values of all. */
const MAX_BATCH = 128;
/** The longest time from one batch to the next whose values are proven, and its share of a block's time. */
const MAX_GATHER_MS = 1_000;
const GATHER_SHARE = 0.5;
const MAX_QUEUED = 1_024;
/** The share of one client. */
const MAX_QUEUED_OF_CLIENT = 256;
/** Each round reads the values that the last one lacked. A chain of proxies needs one for each. */
const MAX_ROUNDS = 12;
/** The longest wait for the write set of the block. */
const MAX_WAIT_MS = 5_000;
/** A call that needs more values is left to the nodes. */
const MAX_VALUES = 1_000;

/** A node's answer to a call, from which forebay can learn what the call reads. */
export interface LearnCandidate extends KnownCall {
  readonly clientId: string;
  /** For a proven answer, values that only nodes stated are proven before it is learned. */
  readonly needs: Grade;
}

interface OpenCall extends PromiseWithResolvers<void>, Pick<LearnCandidate, "needs"> {}

/** One answer that is being learned. */
interface Attempt extends LearnCandidate {
  /** The gas that the node gives to calls. */
  readonly gas: bigint;
  /** The names of all keys that it lacked. */
  readonly lacked: Set<string>;
  /** The keys that the last execution lacked. None: the attempt has ended. */
  keys: readonly StateKey[];
  /** It has executed on all values, and lacked their proofs. */
  lackedProofs: boolean;
}

/**
 * Learns in the background what calls read: executes them here, at the block of the node's answer. An answer is learned only if
 * the execution returns the node's bytes. Values come from the known state, and in bulk from nodes.
 */
export class CallLearner {
  readonly #options: CallLearnerOptions;
  #queue: LearnCandidate[] = [];
  /** The calls that are queued or executed, by their texts. */
  readonly #open = new Map<string, OpenCall>();
  #isRunning = false;
  #isClosed = false;
  #lastBeganMs = Number.NEGATIVE_INFINITY;

  constructor(options: CallLearnerOptions) {
    this.#options = options;
  }

  /**
   * Queues an answer. If the call is being learned, that must only end, unless this answer alone requires a proof. Returns a promise
   * that resolves when the call is learned, or cannot be. Undefined: the client or all clients have too many in the queue.
   */
  add(candidate: LearnCandidate): Promise<void> | undefined {
    const known = this.#open.get(candidate.key);
    if (known !== undefined) {
      return !isAtLeast(known.needs, candidate.needs) ? known.promise.then(() => this.add(candidate)) : known.promise;
    }
    const ofClient = this.#queue.filter(({ clientId }) => clientId === candidate.clientId).length;
    if (this.#isClosed || ofClient >= MAX_QUEUED_OF_CLIENT || this.#queue.length >= MAX_QUEUED) {
      return undefined;
    }
    const open = { ...Promise.withResolvers<void>(), needs: candidate.needs };
    this.#open.set(candidate.key, open);
    this.#queue.push(candidate);
    void this.#run();
    return open.promise;
  }

  close(): void {
    this.#isClosed = true;
    this.#queue = [];
    for (const { resolve } of this.#open.values()) {
      resolve();
    }
    this.#open.clear();
  }

  async #run(): Promise<void> {
    if (this.#isRunning) {
      return;
    }
    this.#isRunning = true;
    try {
      while (this.#queue.length > 0) {
        // Other responses of the same turn join the batch.
        await new Promise((resolve) => setImmediate(resolve));
        await this.#gather();
        await this.#learn(this.#takeBatch());
      }
    } finally {
      this.#isRunning = false;
    }
  }

  /**
   * A proof costs the same for one slot of an account and for many. Calls that come soon after a batch are learned together, and
   * share the proofs of the accounts that all of them read.
   */
  async #gather(): Promise<void> {
    const { loader, blockTimeMs } = this.#options;
    const newest = this.#queue.at(-1)?.block;
    if (newest !== undefined && loader.mayProve(newest)) {
      const waitMs = Math.min(MAX_GATHER_MS, GATHER_SHARE * blockTimeMs()) - (performance.now() - this.#lastBeganMs);
      if (waitMs > 0) {
        await sleep(waitMs, undefined, { ref: false });
      }
    }
    this.#lastBeganMs = performance.now();
  }

  /** Takes answers of the newest block. Those of older blocks have less time, but are rare. */
  #takeBatch(): readonly LearnCandidate[] {
    const newest = this.#queue.at(-1)?.block.hash;
    const batch = this.#queue.filter(({ block }) => block.hash === newest).slice(0, MAX_BATCH);
    const taken = new Set(batch);
    this.#queue = this.#queue.filter((candidate) => !taken.has(candidate));
    return batch;
  }

  async #learn(batch: readonly LearnCandidate[]): Promise<void> {
    const [first] = batch;
    if (first === undefined) {
      return;
    }
    const { values, follower } = this.#options;
    const { block } = first;
    const settled = follower.untilApplied(block);
    if (settled !== undefined) {
      await resultWithin(settled, MAX_WAIT_MS);
    }
    // Values that wait for a check are none for executions.
    if (!values.isReadable(block)) {
      this.#refuseAll(batch, "late");
      return;
    }
    let attempts = await this.#begin(batch);
    for (let round = 0; round < MAX_ROUNDS && attempts.length > 0; round++) {
      for (const attempt of attempts) {
        attempt.keys = await this.#attempt(attempt);
      }
      attempts = this.#affordable(
        attempts.filter(({ keys }) => keys.length > 0),
        block,
      );
      await this.#load(attempts, block);
    }
    this.#refuseAll(attempts, "unknown");
  }

  #refuseAll(candidates: readonly LearnCandidate[], refusal: Refusal): void {
    for (const candidate of candidates) {
      this.#end(candidate, refusal);
    }
  }

  #end(candidate: LearnCandidate, result: CallResult | Refusal): void {
    const { table } = this.#options;
    if (typeof result === "object") {
      table.store(candidate, result, "learned");
    } else {
      table.refuse(candidate, result);
    }
    this.#open.get(candidate.key)?.resolve();
    this.#open.delete(candidate.key);
  }

  async #begin(batch: readonly LearnCandidate[]): Promise<readonly Attempt[]> {
    const { defaults } = this.#options;
    const attempts: Attempt[] = [];
    for (const candidate of batch) {
      const found = await defaults.get(candidate.node, candidate.block);
      if (found?.hasZeroSender === true) {
        attempts.push({ ...candidate, gas: found.gas, lacked: new Set(), keys: [], lackedProofs: false });
      } else {
        this.#end(candidate, "defaults");
      }
    }
    return attempts;
  }

  /** Executes once. Returns the keys that must be loaded before the next execution; none if the attempt has ended. */
  async #attempt(attempt: Attempt): Promise<readonly StateKey[]> {
    const run = await this.#options.runner.run(attempt, attempt.gas);
    if (run.kind === "missing" && isProgress(run.keys, attempt.lacked)) {
      return run.keys;
    }
    if (run.kind === "answer" && isRequired(attempt) && !attempt.lackedProofs && run.unproven.length > 0) {
      attempt.lackedProofs = true;
      return run.unproven;
    }
    this.#end(attempt, outcomeOf(run, attempt));
    return [];
  }

  /** Returns the attempts whose values may be loaded now. Clients wait for those that require proofs. Refuses the others. */
  #affordable(attempts: readonly Attempt[], block: BlockId): readonly Attempt[] {
    const { loader, cost } = this.#options;
    const unitsOf = (each: readonly Attempt[]) => loader.unitsFor(keysOf(each), block);
    const inOrder = [...attempts.filter(isRequired), ...attempts.filter(isBackground)];
    const allowed = affordable(inOrder, unitsOf, cost.forLearning);
    this.#refuseAll(
      attempts.filter((each) => !allowed.includes(each)),
      "budget",
    );
    return allowed;
  }

  /** Loads the values together. Never rejects. */
  async #load(attempts: readonly Attempt[], block: BlockId): Promise<void> {
    const { loader, cost } = this.#options;
    const keys = keysOf(attempts);
    if (keys.length === 0) {
      return;
    }
    await loader.load(keys, block, (units) => {
      for (const attempt of attempts) {
        cost.spend(isRequired(attempt) ? "proofs" : "learning", (units * attempt.keys.length) / keys.length);
      }
    });
  }
}

/** Without a node's result, only a proven answer is one: the node has returned an error, and may be right about a stated value. */
const outcomeOf = (run: KnownRun, { body }: Attempt): CallResult | Refusal => {
  if (run.kind !== "answer") {
    return run.kind === "refused" ? run.refusal : "unknown";
  }
  return body === undefined && run.answer.grade !== "proven" ? "mismatch" : run.answer;
};

const isRequired = ({ needs }: Attempt): boolean => needs === "proven";

const isBackground = (attempt: Attempt): boolean => !isRequired(attempt);

const keysOf = (attempts: readonly Attempt[]): readonly StateKey[] => attempts.flatMap(({ keys }) => keys);

/** Adds the keys that an execution lacks. Returns false if it lacked all of them before, or if they are too many. */
const isProgress = (missing: readonly StateKey[], lacked: Set<string>): boolean => {
  const before = lacked.size;
  for (const key of missing) {
    lacked.add(keyName(key));
  }
  // A code is loaded after its hash.
  const hasNew = lacked.size > before || missing.some(({ field }) => field === "code");
  return missing.length > 0 && hasNew && lacked.size <= MAX_VALUES;
};
