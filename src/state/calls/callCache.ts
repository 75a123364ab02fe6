import type { Context } from "../../core/context.ts";
import type { BlockId, Heads } from "../../core/heads.ts";
import { type CacheStatus, isFreshFromNode, type RpcResponse } from "../../core/rpcSource.ts";
import { type Awaitable, whenKnown } from "../../jsonrpc/call.ts";
import type { Telemetry } from "../../telemetry/telemetry.ts";
import { runSliced } from "../runSliced.ts";
import type { StateCost } from "../stateCost.ts";
import type { StateFollower } from "../stateFollower.ts";
import { StateLookups } from "../stateLookups.ts";
import type { ValueStore } from "../store/valueStore.ts";
import type { Repetition } from "../usedKeys.ts";
import { resolvesWithin, type WriteSetWaits } from "../writeSetWaits.ts";
import type { CallChecks } from "./callChecks.ts";
import type { CallReruns, EndedCall } from "./callReruns.ts";
import type { CallResult } from "./callResult.ts";
import { CALL_METHODS, type CallMethod } from "./callRun.ts";
import type { CallEntry, CallTable, LearnCandidate } from "./callTable.ts";

export interface CallCacheOptions {
  readonly table: CallTable;
  readonly values: Pick<ValueStore, "head" | "isTrusted" | "maxReadable">;
  readonly follower: Pick<StateFollower, "generation" | "isFollowing" | "untilApplied">;
  readonly cost: Pick<StateCost, "onCall" | "onAsked">;
  readonly learner: { add(candidate: LearnCandidate): void };
  readonly reruns: Pick<CallReruns, "rerun">;
  readonly waits: WriteSetWaits;
  /** The longest wait for an execution, in milliseconds. */
  readonly waitMs: number;
  readonly checks: Pick<CallChecks, "onLocalResult" | "compare">;
  readonly chain: string;
  readonly telemetry: Pick<Telemetry, "metrics">;
}

/** One call at a block of the view. */
export interface CacheableCall {
  readonly method: CallMethod;
  /** The canonical text of method and parameters without the block. */
  readonly key: string;
  readonly block: BlockId;
  readonly context: Context;
}

type Ask = () => Awaitable<RpcResponse>;

const decoder = new TextDecoder();
const HIT: CacheStatus = Object.freeze({ hit: "state" });
/** A larger request is left to the nodes. */
export const MAX_KEY_CHARACTERS = 65_536;
/** Calls that are executed at once before they are requested. Those of clients go in between. */
const REFRESHES = 8;
/** A larger response is left to the nodes. */
const MAX_BODY_BYTES = 65_536;

/**
 * Answers calls with the bytes that a node returned at an earlier block, while no later block wrote a value that the call reads.
 * If one was written and all values are known, the call executes here. The first response of a call is not learned. The second
 * one at another block is.
 */
export class CallCache {
  readonly #options: CallCacheOptions;
  readonly #lookups: StateLookups<CallMethod>;

  constructor(options: CallCacheOptions) {
    this.#options = options;
    this.#lookups = new StateLookups(options.chain, options.telemetry.metrics, CALL_METHODS);
  }

  /** Answers a call. `ask` sends it to a node. A valid answer is returned without a promise. */
  request(call: CacheableCall, ask: Ask): Awaitable<RpcResponse> {
    const { table, values } = this.#options;
    const { key, block, context } = call;
    const { heads } = context.view;
    if (key.length > MAX_KEY_CHARACTERS || heads.latest.number - block.number >= values.maxReadable) {
      return ask();
    }
    const entry = table.get(key);
    const answer = entry && table.findValid(entry, block, heads);
    if (context.bypassCache) {
      return answer === undefined ? ask() : this.#compare(call, answer, ask);
    }
    if (entry?.answer === undefined) {
      return this.#ask(call, entry, ask);
    }
    return answer === undefined ? this.#waitOrRerun(call, entry, ask) : this.#answer(entry, answer, call);
  }

  /**
   * Executes the calls whose answers have ended before a readable block, the most used ones first, until `isOver`. Requests that
   * come later find the answers.
   */
  async refresh(block: BlockId, heads: Heads, isOver: () => boolean): Promise<void> {
    const ended = await runSliced(this.#endedAt(block, heads));
    const calls = ended.values();
    const refreshNext = async (): Promise<void> => {
      for (let next = calls.next(); !next.done && !isOver(); next = calls.next()) {
        await this.#refresh(next.value);
      }
    };
    await Promise.all(Array.from({ length: REFRESHES }, refreshNext));
  }

  /** Lists the calls whose answers have ended before a block, with a step for each answer. */
  *#endedAt(block: BlockId, heads: Heads): Generator<void, readonly EndedCall[]> {
    const ended: EndedCall[] = [];
    for (const stored of this.#options.table.answersAt(block, heads)) {
      if (stored?.isValid === false) {
        ended.push({ key: stored.key, method: stored.method, block });
      }
      yield;
    }
    return ended;
  }

  async #refresh(call: EndedCall): Promise<void> {
    const { table, reruns } = this.#options;
    const entry = table.get(call.key);
    if (entry?.answer !== undefined && entry.rerun === undefined) {
      await this.#begin(call, entry, reruns.rerun(call, entry.answer));
    }
  }

  #compare({ key, method, block }: CacheableCall, answer: CallResult, ask: Ask): Awaitable<RpcResponse> {
    return whenKnown(ask(), (response) => {
      if (isFreshFromNode(response) && response.block?.hash === block.hash && response.body instanceof Uint8Array) {
        const actual: unknown = JSON.parse(decoder.decode(response.body));
        const isProven = this.#options.table.isProven(answer, block);
        void this.#options.checks.compare({ ...answer, key, method, block, isProven }, actual);
      }
      return response;
    });
  }

  #answer(entry: CallEntry, answer: CallResult, call: CacheableCall): RpcResponse {
    const { key, method, block } = call;
    const { body, reads, node } = answer;
    this.#count(entry, call, true);
    const isProven = this.#options.table.isProven(answer, block);
    this.#options.checks.onLocalResult({ key, method, block, body, reads, node, isProven });
    return { body, status: HIT, block, proof: isProven ? "proven" : "checked" };
  }

  /** Waits for the block's write set if only that is missing. */
  #waitOrRerun(call: CacheableCall, entry: CallEntry, ask: Ask): Awaitable<RpcResponse> {
    const { table, values, follower } = this.#options;
    const { head } = values;
    const settled = follower.untilApplied(call.block);
    const { answer } = entry;
    if (settled === undefined || head === undefined || answer?.generation !== follower.generation) {
      return this.#rerunOrAsk(call, entry, ask);
    }
    const mayHold = answer.isRepeatable || table.findValid(entry, head, call.context.view.heads) !== undefined;
    return mayHold ? this.#wait(call, settled, ask) : this.#ask(call, entry, ask);
  }

  async #wait(call: CacheableCall, settled: Promise<void>, ask: Ask): Promise<RpcResponse> {
    const { table, waits } = this.#options;
    const { found, isSettled } = await waits.find(settled, () => {
      const entry = table.get(call.key);
      const answer = entry && table.findValid(entry, call.block, call.context.view.heads);
      return entry && answer && { entry, answer };
    });
    if (found !== undefined) {
      return this.#answer(found.entry, found.answer, call);
    }
    const entry = table.get(call.key);
    return isSettled && entry !== undefined ? this.#rerunOrAsk(call, entry, ask) : this.#ask(call, entry, ask);
  }

  /** Executes the call here if that is possible, once for simultaneous requests. */
  #rerunOrAsk(call: CacheableCall, entry: CallEntry, ask: Ask): Awaitable<RpcResponse> {
    const { reruns, follower } = this.#options;
    const { answer } = entry;
    if (answer === undefined || answer.generation !== follower.generation) {
      return this.#ask(call, entry, ask);
    }
    const isRunning = entry.rerun?.block.hash === call.block.hash;
    const running = isRunning ? entry.rerun?.answer : this.#begin(call, entry, reruns.rerun(call, answer));
    return running === undefined ? this.#ask(call, entry, ask) : this.#rerun(call, running, ask);
  }

  #begin({ key, method, block }: EndedCall, entry: CallEntry, running: Promise<CallResult | undefined> | undefined) {
    if (running === undefined) {
      return undefined;
    }
    const { table } = this.#options;
    const answer = running.then((found) => {
      entry.rerun = undefined;
      if (found !== undefined) {
        this.#countEvent(method, "recomputed");
        table.store(key, found);
      }
      return found;
    });
    entry.rerun = { block, answer };
    return answer;
  }

  async #rerun(call: CacheableCall, running: Promise<CallResult | undefined>, ask: Ask): Promise<RpcResponse> {
    const { table, waitMs } = this.#options;
    let found: CallResult | undefined;
    await resolvesWithin(
      running.then((answer) => {
        found = answer;
      }),
      waitMs,
    );
    const entry = table.get(call.key);
    return found === undefined || entry === undefined ? this.#ask(call, entry, ask) : this.#answer(entry, found, call);
  }

  #ask(call: CacheableCall, entry: CallEntry | undefined, ask: Ask): Awaitable<RpcResponse> {
    const { generation } = this.#options.follower;
    const repetition = this.#count(entry, call, false);
    return whenKnown(ask(), (response) => {
      if (isFreshFromNode(response)) {
        this.#options.cost.onAsked(call.method);
        this.#learn(call, { response, generation, repetition });
      }
      return response;
    });
  }

  #countEvent(method: CallMethod, event: "invalidated" | "recomputed"): void {
    const { chain, telemetry } = this.#options;
    telemetry.metrics.stateAnswers.inc({ chain, method, event });
  }

  /** Counts a request. Returns whether it repeats one of an older block. */
  #count(entry: CallEntry | undefined, { key, method, block }: CacheableCall, isHit: boolean): Repetition {
    const { table, cost } = this.#options;
    this.#lookups.count(method, isHit);
    const repetition = table.record(key, entry, method, block);
    // A call that cannot be learned does not pay for write sets.
    if (entry === undefined || table.mayLearn(entry, block)) {
      cost.onCall({ method, block: block.number, repetition, isHit });
    }
    return repetition;
  }

  #learn({ key, method, context }: CacheableCall, { response, generation, repetition }: AskedResponse): void {
    const { table, learner, follower, values } = this.#options;
    if (repetition !== "repeated" || !follower.isFollowing || !values.isTrusted) {
      return;
    }
    const { body, block, node } = response;
    const entry = table.get(key);
    if (entry === undefined) {
      return;
    }
    if (block === undefined || node === undefined || !table.mayLearn(entry, block)) {
      return;
    }
    if (!(body instanceof Uint8Array) || body.length > MAX_BODY_BYTES) {
      return;
    }
    if (entry.answer !== undefined) {
      this.#countEvent(method, "invalidated");
    }
    const expected = entry.answer?.reads;
    learner.add({ key, method, body, block, node, generation, clientId: context.caller.clientId, expected });
  }
}

/** The response of a node. */
interface AskedResponse {
  readonly response: RpcResponse;
  /** Of the state follower, before the node was asked. */
  readonly generation: number;
  readonly repetition: Repetition;
}
