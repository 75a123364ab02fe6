import type { BlockId } from "../../core/heads.ts";
import type { StateFollower } from "../stateFollower.ts";
import { keyName, type StateKey } from "../stateKey.ts";
import { resolvesWithin } from "../writeSetWaits.ts";
import { CallRunner, type CallRunnerOptions } from "./callRunner.ts";
import type { CallTable, LearnCandidate, Refusal } from "./callTable.ts";
import type { NodeDefaults } from "./nodeDefaults.ts";
import { ValueLoads, type ValueLoadsOptions, type WantedValues } from "./valueLoads.ts";

export interface CallLearnerOptions extends CallRunnerOptions, ValueLoadsOptions {
  readonly follower: Pick<StateFollower, "generation" | "untilApplied">;
  /** Returns the environment that a node gives to calls. Undefined: it is not known. */
  defaultsOf(node: string, block: BlockId): Promise<NodeDefaults | undefined>;
  readonly table: Pick<CallTable, "learn" | "refuse">;
  /** Removes a node's response to a call from the cache. */
  forget(candidate: LearnCandidate): void;
}

/** Answers that are learned together, so that one bulk read has the values of all. */
const MAX_BATCH = 64;
const MAX_QUEUED = 1_024;
/** The share of one client. */
const MAX_QUEUED_OF_CLIENT = 256;
/** Each round reads the values that the last one lacked. A chain of proxies needs one for each. */
const MAX_ROUNDS = 12;
/** The longest wait for the write set of the block. */
const MAX_WAIT_MS = 5_000;
/** A call that needs more values is left to the nodes. */
const MAX_VALUES = 1_000;

/** One answer that is being learned. */
interface Attempt extends WantedValues {
  readonly candidate: LearnCandidate;
  readonly defaults: NodeDefaults;
  /** The names of all keys that it lacked. */
  readonly lacked: Set<string>;
  /** The keys that the last execution lacked. None: the attempt has ended. */
  keys: readonly StateKey[];
}

/**
 * Learns in the background what calls read: executes them here, at the block of the node's answer. An answer is learned only if
 * the execution returns the node's bytes. Values come from the known state, and in bulk from nodes.
 */
export class CallLearner {
  readonly #options: CallLearnerOptions;
  readonly #runner: CallRunner;
  readonly #loads: ValueLoads;
  #queue: LearnCandidate[] = [];
  #isRunning = false;
  #isClosed = false;

  constructor(options: CallLearnerOptions) {
    this.#options = options;
    this.#runner = new CallRunner(options);
    this.#loads = new ValueLoads(options);
  }

  /** Queues an answer. Does nothing if the client or all clients have too many in the queue. */
  add(candidate: LearnCandidate): void {
    const ofClient = this.#queue.filter(({ clientId }) => clientId === candidate.clientId).length;
    const isQueued = this.#queue.some(({ key }) => key === candidate.key);
    if (this.#isClosed || isQueued || ofClient >= MAX_QUEUED_OF_CLIENT || this.#queue.length >= MAX_QUEUED) {
      return;
    }
    this.#queue.push(candidate);
    void this.#run();
  }

  close(): void {
    this.#isClosed = true;
    this.#queue = [];
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
        await this.#learn(this.#takeBatch());
      }
    } finally {
      this.#isRunning = false;
    }
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
    const { block } = first;
    const settled = this.#options.follower.untilApplied(block);
    if (settled !== undefined) {
      await resolvesWithin(settled, MAX_WAIT_MS);
    }
    const { values } = this.#options;
    // A source on probation has no values for executions.
    if (!values.isReadable(block)) {
      for (const candidate of batch) {
        this.#options.table.refuse(candidate, "late");
      }
      return;
    }
    let attempts = await this.#begin(batch);
    for (let round = 0; round < MAX_ROUNDS && attempts.length > 0; round++) {
      for (const attempt of attempts) {
        attempt.keys = await this.#attempt(attempt);
      }
      const lacking = attempts.filter(({ keys }) => keys.length > 0);
      attempts = this.#loads.affordable(lacking, block);
      this.#refuseAll(
        lacking.filter((each) => !attempts.includes(each)),
        "budget",
      );
      await this.#loads.load(attempts, block);
    }
    this.#refuseAll(attempts, "unknown");
  }

  #refuseAll(attempts: readonly Pick<Attempt, "candidate">[], refusal: Refusal): void {
    for (const { candidate } of attempts) {
      this.#options.table.refuse(candidate, refusal);
    }
  }

  async #begin(batch: readonly LearnCandidate[]): Promise<readonly Attempt[]> {
    const { defaultsOf, table } = this.#options;
    const attempts: Attempt[] = [];
    for (const candidate of batch) {
      const defaults = await defaultsOf(candidate.node, candidate.block);
      if (defaults?.hasZeroSender === true) {
        attempts.push({ candidate, clientId: candidate.clientId, defaults, lacked: new Set(), keys: [] });
      } else {
        table.refuse(candidate, "defaults");
      }
    }
    return attempts;
  }

  /** Executes once. Returns the keys that must be loaded before the next execution; none if the attempt has ended. */
  async #attempt({ candidate, defaults, lacked }: Attempt): Promise<readonly StateKey[]> {
    const { table, forget } = this.#options;
    const run = await this.#runner.run(candidate, defaults.gas);
    if (run.kind === "missing" && isProgress(run.keys, lacked)) {
      return run.keys;
    }
    if (run.kind !== "done") {
      table.refuse(candidate, run.kind === "failed" ? "failed" : "unknown");
      return [];
    }
    const result = this.#runner.resultOf(candidate, run);
    if (typeof result === "object") {
      table.learn(candidate, result);
      return [];
    }
    if (result === "mismatch" && run.outcome.reads.blockHashes.length > 0) {
      // The node's bytes may be of a BLOCKHASH that was zero (CallChecks).
      forget(candidate);
    }
    table.refuse(candidate, result);
    return [];
  }
}

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
