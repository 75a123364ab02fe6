import { LRUCache } from "lru-cache";
import type { BlockId, Heads } from "../../core/heads.ts";
import type { CacheStatus, RequestContext, RpcResponse } from "../../core/rpcSource.ts";
import { type Awaitable, whenKnown } from "../../jsonrpc/awaitable.ts";
import { type BlockValues, READABLE_BLOCKS } from "../blockValues.ts";
import type { EconomicPolicy } from "../economicPolicy.ts";
import { resolvesWithin } from "../resolvesWithin.ts";
import type { StateFollower } from "../stateFollower.ts";
import type { Repetition } from "../usedKeys.ts";
import { type Answer, validityAt } from "./answer.ts";
import type { Refusal, Sighting } from "./answerLearner.ts";
import type { AnswerMethod } from "./callRun.ts";

/** An event in the life of an answer. A label value of a metric. */
export type AnswerEvent = "learned" | "survived" | "ended" | Refusal;

export interface AnswersOptions {
  readonly values: Pick<BlockValues, "get" | "head" | "isProven" | "isReadable" | "isWrittenSince">;
  readonly follower: Pick<StateFollower, "generation" | "isFollowing" | "untilApplied">;
  readonly policy: Pick<EconomicPolicy, "onCall">;
  readonly learner: { add(sighting: Sighting): void };
  /** The longest wait for a write set, in milliseconds. */
  readonly waitMs: number;
  readonly blockTimeMs: () => number;
  readonly maxBytes: number;
  onLookup(method: AnswerMethod, isHit: boolean): void;
  onWait(result: "hit" | "unknown" | "late"): void;
  onEvent(method: AnswerMethod, event: AnswerEvent): void;
}

/** One call at a block of the view. */
export interface AnswerCall {
  readonly method: AnswerMethod;
  /** The canonical text of method and parameters without the block. */
  readonly key: string;
  readonly block: BlockId;
  readonly context: RequestContext;
}

/** The answer to one call, or the facts that decide whether to learn one. */
interface CallEntry {
  /** The newest block of a request. */
  block: bigint;
  readonly method: AnswerMethod;
  answer: Answer | undefined;
  /** The newest block at which the answer is known to be valid. */
  validAt: BlockId | undefined;
  /** Not learned before this block. */
  retryAt: bigint;
  refusals: number;
}

const HIT: CacheStatus = Object.freeze({ hit: "state" });
const OLDEST = BigInt(READABLE_BLOCKS);
/** A larger response or request is left to the nodes. */
const MAX_BODY_BYTES = 65_536;
const ENTRY_BYTES = 300;
const KEY_BYTES = 250;
/** A call that cannot be learned is tried again after 16 blocks, then 32 and so on. */
const FIRST_RETRY_BLOCKS = 16n;
const MAX_RETRY_SHIFT = 16;
/** An answer that is this many blocks old is moved to the newest block at which it is valid. */
const MOVE_BLOCKS = OLDEST / 2n;

const bytesOf = ({ answer }: CallEntry, key: string): number =>
  ENTRY_BYTES +
  2 * key.length +
  (answer === undefined
    ? 0
    : answer.body.length + KEY_BYTES * (answer.reads.keys.length + answer.reads.addresses.size));

/**
 * Answers calls with the bytes that a node returned at an earlier block, while no later block wrote a value that the call reads.
 * The first response of a call is not learned. The second one at another block is.
 */
export class Answers {
  readonly #options: AnswersOptions;
  readonly #entries: LRUCache<string, CallEntry>;

  constructor(options: AnswersOptions) {
    this.#options = options;
    this.#entries = new LRUCache({ maxSize: Math.max(1, options.maxBytes), sizeCalculation: bytesOf });
  }

  /** Number of answers and of calls that may become ones. */
  get size(): number {
    return this.#entries.size;
  }

  /** Answers a call. `ask` sends it to a node. A valid answer is returned without a promise. */
  request(call: AnswerCall, ask: () => Awaitable<RpcResponse>): Awaitable<RpcResponse> {
    const { key, block, context } = call;
    const { heads } = context.view;
    if (context.bypassCache || key.length > MAX_BODY_BYTES || heads.latest.number - block.number >= OLDEST) {
      return ask();
    }
    const entry = this.#entries.get(key);
    if (entry?.answer === undefined) {
      return this.#ask(call, entry, ask);
    }
    if (this.#isValid(entry, entry.answer, call)) {
      return this.#answer(entry, entry.answer, call);
    }
    return this.#waitOrAsk(call, entry, ask);
  }

  /** Adds an answer that was learned. */
  learned({ key, method }: Sighting, answer: Answer): void {
    const entry = this.#entries.get(key);
    if (entry === undefined) {
      return;
    }
    // The cache weighs an entry only if it is set.
    this.#entries.set(key, { ...entry, answer, validAt: answer.block, refusals: 0 });
    this.#options.onEvent(method, "learned");
  }

  /** Records that an answer could not be learned. */
  refused({ key, method, block }: Sighting, refusal: Refusal): void {
    this.#options.onEvent(method, refusal);
    const entry = this.#entries.get(key);
    if (entry !== undefined) {
      entry.retryAt = block.number + (FIRST_RETRY_BLOCKS << BigInt(Math.min(entry.refusals, MAX_RETRY_SHIFT)));
      entry.refusals++;
    }
  }

  /** Drops all answers. */
  clear(): void {
    this.#entries.clear();
  }

  /** Whether the answer is that of the call's block. */
  #isValid(entry: CallEntry, answer: Answer, { method, block, context }: AnswerCall): boolean {
    const { values, follower, onEvent } = this.#options;
    if (answer.generation !== follower.generation) {
      return false;
    }
    if (entry.validAt?.hash === block.hash) {
      return true;
    }
    const validity = validityAt(answer, block, values, context.view.heads);
    if (validity !== "valid") {
      return false;
    }
    if (block.number > (entry.validAt?.number ?? -1n)) {
      onEvent(method, "survived");
      entry.validAt = block;
      if (block.number - answer.block.number > MOVE_BLOCKS) {
        this.#move(entry, answer, block, context.view.heads);
      }
    }
    return true;
  }

  /** Write sets are known of the newest blocks only, so that an old answer is moved to a newer block. */
  #move(entry: CallEntry, answer: Answer, block: BlockId, heads: Heads): void {
    const header = heads.header(block.number);
    if (header !== undefined) {
      entry.answer = { ...answer, block, header: { feeRecipient: header.miner, gasLimit: header.gasLimit } };
    }
  }

  #answer(entry: CallEntry, { body }: Answer, call: AnswerCall): RpcResponse {
    this.#count(entry, call, true);
    return { body, status: HIT };
  }

  /** Waits for the block's write set if only that is missing: the answer is valid at the block before. */
  #waitOrAsk(call: AnswerCall, entry: CallEntry, ask: () => Awaitable<RpcResponse>): Awaitable<RpcResponse> {
    const { values, follower } = this.#options;
    const { answer } = entry;
    const { head } = values;
    const settled = follower.untilApplied(call.block);
    if (settled === undefined || head === undefined || answer?.generation !== follower.generation) {
      return this.#ask(call, entry, ask);
    }
    const isValidBefore = entry.validAt?.hash === head.hash || this.#isValid(entry, answer, { ...call, block: head });
    return isValidBefore ? this.#wait(call, { entry, settled }, ask) : this.#ask(call, entry, ask);
  }

  async #wait(
    call: AnswerCall,
    { entry, settled }: { readonly entry: CallEntry; readonly settled: Promise<void> },
    ask: () => Awaitable<RpcResponse>,
  ): Promise<RpcResponse> {
    const { waitMs, blockTimeMs, onWait } = this.#options;
    const isSettled = await resolvesWithin(settled, Math.min(waitMs, blockTimeMs() / 2));
    const current = this.#entries.get(call.key) ?? entry;
    const { answer } = current;
    if (answer !== undefined && this.#isValid(current, answer, call)) {
      onWait("hit");
      return this.#answer(current, answer, call);
    }
    onWait(isSettled ? "unknown" : "late");
    return this.#ask(call, current, ask);
  }

  #ask(call: AnswerCall, entry: CallEntry | undefined, ask: () => Awaitable<RpcResponse>): Awaitable<RpcResponse> {
    const { generation } = this.#options.follower;
    const repetition = this.#count(entry, call, false);
    return whenKnown(ask(), (response) => {
      this.#see(call, { response, generation, repetition });
      return response;
    });
  }

  /** Counts a request. Returns whether it repeats one of an older block. */
  #count(entry: CallEntry | undefined, { key, method, block }: AnswerCall, isHit: boolean): Repetition {
    const { policy, onLookup } = this.#options;
    onLookup(method, isHit);
    const repetition = repetitionOf(entry, block);
    if (entry === undefined) {
      const added = { block: block.number, method, answer: undefined, validAt: undefined, retryAt: 0n, refusals: 0 };
      this.#entries.set(key, added);
    } else if (repetition === "repeated") {
      entry.block = block.number;
    }
    // A call that cannot be learned does not pay for write sets.
    if (entry === undefined || entry.retryAt <= block.number) {
      policy.onCall({ method, block: block.number, repetition, isHit });
    }
    return repetition;
  }

  /** Learns from the response of a node for a block's hash, like StateReads: a cached response may be too old. */
  #see(
    { key, method, context }: AnswerCall,
    { response, generation, repetition }: { response: RpcResponse; generation: number; repetition: Repetition },
  ): void {
    const { learner, follower, values, onEvent } = this.#options;
    const { body, block, node, verified, status } = response;
    const isAsked = verified === true && status.hit === undefined && status.collapsed !== true;
    const entry = this.#entries.get(key);
    if (!isAsked || repetition !== "repeated" || entry === undefined || !follower.isFollowing || !values.isProven) {
      return;
    }
    if (block === undefined || node === undefined || !(body instanceof Uint8Array) || body.length > MAX_BODY_BYTES) {
      return;
    }
    if (entry.retryAt > block.number) {
      return;
    }
    if (entry.answer !== undefined) {
      onEvent(method, "ended");
    }
    const expected = entry.answer?.reads;
    learner.add({ key, method, body, block, node, generation, clientId: context.clientId, expected });
  }
}

const repetitionOf = (entry: CallEntry | undefined, block: BlockId): Repetition => {
  if (entry === undefined) {
    return "new";
  }
  return entry.block >= block.number ? "sameBlock" : "repeated";
};
