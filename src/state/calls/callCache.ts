import type { Context } from "../../core/context.ts";
import { isAtLeast } from "../../core/grade.ts";
import type { BlockId } from "../../core/heads.ts";
import type { Abortable } from "../../core/lazySignal.ts";
import { isClientFault, NodeError } from "../../core/node.ts";
import { type CacheStatus, isFreshFromNode, type RpcResponse } from "../../core/rpcSource.ts";
import { type Awaitable, whenKnown } from "../../jsonrpc/call.ts";
import { SharedTask } from "../../limits/sharedTask.ts";
import type { Telemetry } from "../../telemetry/telemetry.ts";
import type { StateCost } from "../cost.ts";
import type { StateFollower } from "../stateFollower.ts";
import { StateLookups } from "../stateLookups.ts";
import type { Repetition } from "../store/usedValues.ts";
import type { ValueStore } from "../store/valueStore.ts";
import type { ValueLoader } from "../valueLoader.ts";
import { resultWithin, type WriteSetWaits } from "../writeSetWaits.ts";
import type { CallChecks, LocalResult } from "./callChecks.ts";
import type { CallLearner } from "./callLearner.ts";
import { type CallResult, gradeAt } from "./callResult.ts";
import { type BlockCall, CALL_METHODS, type CallMethod } from "./callRun.ts";
import type { CallRunner } from "./callRunner.ts";
import type { WasSeen } from "./callSights.ts";
import type { CallEntry, CallTable } from "./callTable.ts";

export interface CallCacheOptions {
  readonly table: CallTable;
  readonly values: Pick<ValueStore, "head" | "isChecked" | "maxReadable" | "gradeSince" | "isWrittenSince">;
  readonly follower: Pick<StateFollower, "generation" | "isFollowing" | "untilApplied">;
  readonly cost: Pick<StateCost, "onCall">;
  readonly learner: Pick<CallLearner, "add">;
  readonly loader: Pick<ValueLoader, "mayProve">;
  readonly runner: Pick<CallRunner, "executeAgain">;
  readonly waits: WriteSetWaits;
  /** The longest wait for an execution, in milliseconds. */
  readonly waitMs: number;
  readonly checks: Pick<CallChecks, "onLocalResult" | "compare">;
  /** Undefined without Redis. */
  readonly wasSeen: WasSeen | undefined;
  readonly chain: string;
  readonly telemetry: Pick<Telemetry, "metrics">;
}

/** One call at a block of the view. */
export interface CacheableCall extends BlockCall {
  readonly context: Context;
}

interface AskOptions {
  /** What ends the call. It is not answered from the cache then. Default: as any request of the client. */
  readonly ending?: Abortable;
  /** See `RpcRequest`. */
  readonly isFirst?: boolean;
}

/** Sends a call to a node. */
export type AskCall = (options?: AskOptions) => Awaitable<RpcResponse>;

const FIRST: AskOptions = { isFirst: true };

const ANSWERED_HERE: CacheStatus = Object.freeze({ hit: "local" });

/**
 * The response to a client that requires a proof, if the call could not be proven shortly before. No node is asked: the client would
 * not get its answer.
 */
const UNPROVEN: RpcResponse = Object.freeze({
  body: Buffer.from("null"),
  status: ANSWERED_HERE,
});

/** What a node answered to a call. Without a body, it returned an error. */
interface NodeAnswer extends Pick<RpcResponse, "block"> {
  readonly body?: RpcResponse["body"];
  readonly node?: string | undefined;
}

const decoder = new TextDecoder();
const HIT: CacheStatus = Object.freeze({ hit: "state" });
/** A larger request is left to the nodes. */
const MAX_KEY_CHARACTERS = 65_536;
/** Calls that are executed at once before they are requested. Those of clients go in between. */
const REFRESHES = 8;
/** A larger response is left to the nodes. */
const MAX_BODY_BYTES = 65_536;

/**
 * Answers calls with the bytes that a node returned at an earlier block, while no later block wrote a value that the call reads.
 * If one was written and all values are known, the call executes here. The first response of a call is not learned. The second
 * one at another block is. A client that requires a proof waits until its first call is learned.
 */
export class CallCache {
  readonly #options: CallCacheOptions;
  readonly #lookups: StateLookups<CallMethod>;
  /** The requests that wait for a proof, by block and call. */
  readonly #proving = new Map<string, SharedTask<RpcResponse>>();

  constructor(options: CallCacheOptions) {
    this.#options = options;
    this.#lookups = new StateLookups(options.chain, options.telemetry.metrics, CALL_METHODS);
  }

  /** Answers a call. `ask` sends it to a node. A valid answer is returned without a promise. */
  request(call: CacheableCall, ask: AskCall): Awaitable<RpcResponse> {
    const { table, values, follower } = this.#options;
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
    if (entry !== undefined && answer !== undefined) {
      return this.#answerOrAsk(entry, answer, call, ask);
    }
    // An answer that is not valid has ended by a write, unless all values were dropped since.
    const hasEnded = entry?.answer?.generation === follower.generation;
    return hasEnded ? this.#waitOrExecute(call, entry, ask) : this.#ask(call, entry, ask);
  }

  /** Executes these calls at a readable block, the first ones first, until `isOver`. Requests that come later find the answers. */
  async refresh(ended: readonly BlockCall[], isOver: () => boolean): Promise<void> {
    const calls = ended.values();
    const refreshNext = async (): Promise<void> => {
      for (let next = calls.next(); !next.done && !isOver(); next = calls.next()) {
        await this.#refresh(next.value);
      }
    };
    await Promise.all(Array.from({ length: REFRESHES }, refreshNext));
  }

  async #refresh(call: BlockCall): Promise<void> {
    const entry = this.#options.table.get(call.key);
    if (entry?.answer !== undefined && entry.execution === undefined) {
      await this.#execute(call, entry, entry.answer);
    }
  }

  #compare(call: CacheableCall, answer: CallResult, ask: AskCall): Awaitable<RpcResponse> {
    return whenKnown(ask(), (response) => {
      const isAtBlock = response.block?.hash === call.block.hash;
      if (isFreshFromNode(response) && isAtBlock && response.body instanceof Uint8Array) {
        void this.#options.checks.compare(this.#localResult(call, answer), JSON.parse(decoder.decode(response.body)));
      }
      return response;
    });
  }

  /** Answers, unless the client waits for a proof that the answer lacks. */
  #answerOrAsk(entry: CallEntry, answer: CallResult, call: CacheableCall, ask: AskCall): Awaitable<RpcResponse> {
    const needs = this.#mustLearn(call, entry) ? "proven" : "stated";
    const isUsable = isAtLeast(gradeAt(answer, call.block, this.#options.values), needs);
    return isUsable ? this.#answer(entry, answer, call) : this.#ask(call, entry, ask);
  }

  #answer(entry: CallEntry, answer: CallResult, call: CacheableCall): RpcResponse {
    this.#count(entry, call, true);
    const result = this.#localResult(call, answer);
    this.#options.checks.onLocalResult(result);
    return { body: result.body, status: HIT, block: result.block, grade: result.grade };
  }

  #localResult({ key, method, block }: BlockCall, answer: CallResult): LocalResult {
    const { body, reads, node } = answer;
    return { key, method, block, body, reads, node, grade: gradeAt(answer, block, this.#options.values) };
  }

  /** Waits for the block's write set if only that is missing. */
  #waitOrExecute(call: CacheableCall, entry: CallEntry, ask: AskCall): Awaitable<RpcResponse> {
    const { table, values, follower } = this.#options;
    const { head } = values;
    const settled = follower.untilApplied(call.block);
    if (settled === undefined || head === undefined) {
      return this.#executeOrAsk(call, entry, ask);
    }
    const mayHold =
      entry.answer?.isRepeatable === true || table.findValid(entry, head, call.context.view.heads) !== undefined;
    return mayHold ? this.#wait(call, settled, ask) : this.#ask(call, entry, ask);
  }

  async #wait(call: CacheableCall, settled: Promise<void>, ask: AskCall): Promise<RpcResponse> {
    const { table, waits } = this.#options;
    const { found, isSettled } = await waits.find(settled, () => {
      const entry = table.get(call.key);
      const answer = entry && table.findValid(entry, call.block, call.context.view.heads);
      return entry && answer && { entry, answer };
    });
    if (found !== undefined) {
      return this.#answerOrAsk(found.entry, found.answer, call, ask);
    }
    const entry = table.get(call.key);
    return isSettled && entry !== undefined ? this.#executeOrAsk(call, entry, ask) : this.#ask(call, entry, ask);
  }

  /** Executes the call here if that is possible, once for simultaneous requests. */
  #executeOrAsk(call: CacheableCall, entry: CallEntry, ask: AskCall): Awaitable<RpcResponse> {
    const { answer, execution } = entry;
    if (answer?.generation !== this.#options.follower.generation) {
      return this.#ask(call, entry, ask);
    }
    const running = execution?.block.hash === call.block.hash ? execution.answer : this.#execute(call, entry, answer);
    return running === undefined ? this.#ask(call, entry, ask) : this.#answerAfter(call, running, ask);
  }

  /** Begins the execution of a call whose answer has ended. Returns undefined at once if it cannot be executed here. */
  #execute(call: BlockCall, entry: CallEntry, ended: CallResult): Promise<CallResult | undefined> | undefined {
    const { table, runner } = this.#options;
    const running = runner.executeAgain(call, ended)?.then((found) => {
      entry.execution = undefined;
      if (found !== undefined) {
        table.store(call, found, "recomputed");
      }
      return found;
    });
    if (running !== undefined) {
      entry.execution = { block: call.block, answer: running };
    }
    return running;
  }

  /** Waits for the execution, and answers with its result. Without one in time, asks a node. */
  async #answerAfter(
    call: CacheableCall,
    running: Promise<CallResult | undefined>,
    ask: AskCall,
  ): Promise<RpcResponse> {
    const { table, waitMs } = this.#options;
    const found = (await resultWithin(running, waitMs))?.result;
    const entry = table.get(call.key);
    return found === undefined || entry === undefined
      ? this.#ask(call, entry, ask)
      : this.#answerOrAsk(entry, found, call, ask);
  }

  #ask(call: CacheableCall, entry: CallEntry | undefined, ask: AskCall): Awaitable<RpcResponse> {
    const { table, follower } = this.#options;
    const { generation } = follower;
    const repetition = this.#count(entry, call, false);
    if (entry !== undefined && this.#mayProve(call) && !table.mayLearn(entry, call.block)) {
      return UNPROVEN;
    }
    if (this.#mustLearn(call, entry)) {
      table.begin(call);
      return this.#askOnce(call, ask);
    }
    const wasSeen = repetition === "new" ? this.#options.wasSeen?.(call) : undefined;
    return whenKnown(ask(repetition === "new" ? FIRST : undefined), (response) => {
      if (isFreshFromNode(response)) {
        void (repetition === "repeated" && this.#learn(call, response, generation));
        void wasSeen?.then((isRepeated) => isRepeated && this.#learnFirst(call, response, generation));
      }
      return response;
    });
  }

  /** Learns a call at its first request here, because another replica got it at an earlier block. */
  #learnFirst(call: CacheableCall, response: RpcResponse, generation: number): void {
    this.#options.table.begin(call);
    void this.#learn(call, response, generation);
  }

  /** Asks a node for an answer, and waits for its proof. Simultaneous requests share that. */
  #askOnce(call: CacheableCall, ask: AskCall): Promise<RpcResponse> {
    const { key, block, context } = call;
    const name = block.hash + key;
    const running = this.#proving.get(name);
    if (running !== undefined) {
      return running.join(context);
    }
    const task = new SharedTask<RpcResponse>(context, name, this.#proving);
    return task.start(this.#prove(call, () => ask({ ending: task.ending })));
  }

  /** Whether a client waits for a proof. A call is learned once at a block for that. */
  #mustLearn(call: CacheableCall, entry: CallEntry | undefined): boolean {
    return this.#mayProve(call) && this.#mayLearn(entry, call.block);
  }

  #mayProve({ block, context }: CacheableCall): boolean {
    return context.needs === "proven" && this.#options.loader.mayProve(block);
  }

  #mayLearn(entry: CallEntry | undefined, block: BlockId): boolean {
    const { table, follower, values } = this.#options;
    const isPossible = follower.isFollowing && values.isChecked;
    return isPossible && (entry === undefined || table.mayLearn(entry, block));
  }

  /** Waits until the call is learned, and returns the proven answer. Without one, returns the response of the node, or its error. */
  async #prove(call: CacheableCall, ask: () => Awaitable<RpcResponse>): Promise<RpcResponse> {
    const { follower } = this.#options;
    const { block } = call;
    const { generation } = follower;
    try {
      const response = await ask();
      if (!isFreshFromNode(response)) {
        return response;
      }
      const body = await this.#learned(call, response, generation);
      return body === undefined ? response : { ...response, body, block, grade: "proven" };
    } catch (error) {
      // A node can forge the error. The execution here needs nothing of its response.
      const { kind, node } = error instanceof NodeError ? error : {};
      const isAnswer = kind !== undefined && isClientFault(kind);
      const body = isAnswer ? await this.#learned(call, { block, node }, generation) : undefined;
      if (body === undefined) {
        throw error;
      }
      return { body, status: ANSWERED_HERE, block, grade: "proven" };
    }
  }

  /** Waits until the call is learned. Returns the proven answer. */
  async #learned(call: CacheableCall, answer: NodeAnswer, generation: number): Promise<Uint8Array | undefined> {
    const { table, values } = this.#options;
    const { key, block, context } = call;
    const ended = this.#learn(call, answer, generation);
    await (ended && resultWithin(ended, context.deadlineMs - performance.now()));
    const entry = table.get(key);
    const learned = entry && table.findValid(entry, block, context.view.heads);
    return learned !== undefined && gradeAt(learned, block, values) === "proven" ? learned.body : undefined;
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

  /** Returns a promise that resolves when the call is learned, or cannot be learned. `generation`: before the node was asked. */
  #learn(call: CacheableCall, { body, block, node }: NodeAnswer, generation: number): Promise<void> | undefined {
    const { table, learner, chain, telemetry } = this.#options;
    const { key, method, context } = call;
    const entry = table.get(key);
    if (entry === undefined || block === undefined || node === undefined || !this.#mayLearn(entry, block)) {
      return undefined;
    }
    if (body !== undefined && (!(body instanceof Uint8Array) || body.length > MAX_BODY_BYTES)) {
      return undefined;
    }
    if (entry.answer !== undefined) {
      telemetry.metrics.stateAnswers.inc({ chain, method, event: "invalidated" });
    }
    const expected = entry.answer?.reads;
    const needs = this.#mayProve(call) ? "proven" : "stated";
    const { clientId } = context.caller;
    return learner.add({ key, method, body, block, node, generation, clientId, needs, expected });
  }
}
