import type { BlockId, HeaderFields } from "../../core/heads.ts";
import type { Address } from "../../ethereum/hex.ts";
import { resolvesWithin } from "../resolvesWithin.ts";
import type { StateFollower } from "../stateFollower.ts";
import type { StateKey } from "../stateKey.ts";
import type { ValueStore } from "../store/valueStore.ts";
import type { CallChecks } from "./callChecks.ts";
import { isRepeatableCall } from "./callReruns.ts";
import { type CallResult, callReads, resultHeader } from "./callResult.ts";
import type { CallOutcome } from "./callRun.ts";
import type { CallTable, LearnCandidate, Refusal } from "./callTable.ts";
import { type KnownRunOptions, runOnKnownState } from "./knownRun.ts";
import type { NodeDefaults } from "./nodeDefaults.ts";
import { ValueLoads, type ValueLoadsOptions, type WantedValues } from "./valueLoads.ts";

export interface CallLearnerOptions extends KnownRunOptions, ValueLoadsOptions {
  readonly values: Pick<ValueStore, "get" | "code" | "isReadable">;
  readonly follower: Pick<StateFollower, "generation" | "untilApplied">;
  readonly never: ReadonlySet<Address>;
  readonly checks: Pick<CallChecks, "isForwarded">;
  headerOf(block: BlockId): HeaderFields | undefined;
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

const decoder = new TextDecoder();

/** One answer that is being learned. */
interface Attempt {
  readonly candidate: LearnCandidate;
  readonly defaults: NodeDefaults;
  readonly loaded: Set<string>;
}

interface LackingAttempt extends WantedValues {
  readonly attempt: Attempt;
}

/** The result of one execution: what it lacks, or its end. */
type Round =
  | { readonly missing: readonly StateKey[] }
  | { readonly refusal: Refusal }
  | { readonly answer: CallResult };

const nameOf = ({ field, address, slot }: StateKey): string => field + address + (slot ?? "");

/**
 * Learns in the background what calls read: executes them here, at the block of the node's answer. An answer is learned only if
 * the execution returns the node's bytes. Values come from the known state, and in bulk from nodes.
 */
export class CallLearner {
  readonly #options: CallLearnerOptions;
  readonly #loads: ValueLoads;
  #queue: LearnCandidate[] = [];
  #isRunning = false;
  #isClosed = false;

  constructor(options: CallLearnerOptions) {
    this.#options = options;
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
      this.#refuseAll(batch, "late");
      return;
    }
    let attempts = await this.#begin(batch);
    for (let round = 0; round < MAX_ROUNDS && attempts.length > 0; round++) {
      const lacking: LackingAttempt[] = [];
      for (const attempt of attempts) {
        const keys = await this.#attempt(attempt);
        if (keys.length > 0) {
          lacking.push({ attempt, clientId: attempt.candidate.clientId, keys });
        }
      }
      attempts = await this.#load(lacking, block);
    }
    this.#refuseAll(
      attempts.map(({ candidate }) => candidate),
      "unknown",
    );
  }

  /** Loads what the attempts lack. Returns those that the budget allows, and refuses the others. */
  async #load(lacking: readonly LackingAttempt[], block: BlockId): Promise<readonly Attempt[]> {
    const loaded = this.#loads.affordable(lacking, block);
    const refused = lacking.filter((each) => !loaded.includes(each));
    this.#refuseAll(
      refused.map(({ attempt }) => attempt.candidate),
      "budget",
    );
    await this.#loads.load(loaded, block);
    return loaded.map(({ attempt }) => attempt);
  }

  #refuseAll(candidates: readonly LearnCandidate[], refusal: Refusal): void {
    for (const candidate of candidates) {
      this.#options.table.refuse(candidate, refusal);
    }
  }

  async #begin(batch: readonly LearnCandidate[]): Promise<readonly Attempt[]> {
    const { defaultsOf, table } = this.#options;
    const attempts: Attempt[] = [];
    for (const candidate of batch) {
      const defaults = await defaultsOf(candidate.node, candidate.block);
      if (defaults?.hasZeroSender === true) {
        attempts.push({ candidate, defaults, loaded: new Set() });
      } else {
        table.refuse(candidate, "defaults");
      }
    }
    return attempts;
  }

  /** Executes once. Returns the keys that must be loaded before the next try; none if the attempt has ended. */
  async #attempt(attempt: Attempt): Promise<readonly StateKey[]> {
    const { table } = this.#options;
    const { candidate, loaded } = attempt;
    const round = await this.#execute(attempt);
    if ("answer" in round) {
      table.learn(candidate, round.answer);
      return [];
    }
    const refusal = "refusal" in round ? round.refusal : this.#refuse(round.missing, loaded);
    if (refusal !== undefined) {
      table.refuse(candidate, refusal);
      return [];
    }
    return "missing" in round ? round.missing : [];
  }

  /** Returns a refusal if a value is still missing after it was loaded, or if there are too many. */
  #refuse(missing: readonly StateKey[], loaded: Set<string>): Refusal | undefined {
    const before = loaded.size;
    for (const key of missing) {
      loaded.add(nameOf(key));
    }
    const isProgress = loaded.size > before || missing.some(({ field }) => field === "code");
    return missing.length === 0 || !isProgress || loaded.size > MAX_VALUES ? "unknown" : undefined;
  }

  async #execute({ candidate, defaults }: Attempt): Promise<Round> {
    const run = await runOnKnownState(this.#options, { ...candidate, gasCap: defaults.gas });
    switch (run.kind) {
      case "done":
        return this.#judge(candidate, run.outcome);
      case "missing":
        return { missing: run.keys };
      case "failed":
        return { refusal: "failed" };
    }
  }

  #judge(candidate: LearnCandidate, { result, holdsWithLessGas, reads: readSet }: CallOutcome): Round {
    const { follower, values, never, checks, headerOf, forget } = this.#options;
    const { key, method, body, block, generation, node } = candidate;
    const header = resultHeader(headerOf(block));
    if (header === undefined || generation !== follower.generation || !values.isReadable(block)) {
      return { refusal: "late" };
    }
    if (decoder.decode(body).toLowerCase() !== JSON.stringify(result)) {
      if (readSet.blockHashes.length > 0) {
        // The node's bytes may be of a BLOCKHASH that was zero (CallChecks).
        forget(candidate);
      }
      return { refusal: "mismatch" };
    }
    if (checks.isForwarded(key, block)) {
      return { refusal: "forwarded" };
    }
    if (!holdsWithLessGas) {
      return { refusal: "gas" };
    }
    const reads = callReads(readSet);
    if (never.size > 0 && [...reads.addresses].some((address) => never.has(address))) {
      return { refusal: "never" };
    }
    const isRepeatable = method === "eth_call" && isRepeatableCall(key, body, result);
    return { answer: { body, block, reads, header, generation, node, isRepeatable } };
  }
}
