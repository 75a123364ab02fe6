import type { BlockId, HeaderFields } from "../../core/heads.ts";
import type { Address, Data } from "../../ethereum/hex.ts";
import type { StateFollower } from "../stateFollower.ts";
import type { ValueStore } from "../store/valueStore.ts";
import type { CallChecks } from "./callChecks.ts";
import { type CallReads, type CallResult, callReads, resultHeader } from "./callResult.ts";
import { type CallMethod, type CallOutcome, paramsOfKey } from "./callRun.ts";
import { type KnownRunOptions, runOnKnownState } from "./knownRun.ts";
import type { NodeDefaults } from "./nodeDefaults.ts";

export interface CallRerunsOptions extends KnownRunOptions {
  readonly values: Pick<ValueStore, "get" | "code" | "isReadable">;
  readonly follower: Pick<StateFollower, "generation">;
  readonly never: ReadonlySet<Address>;
  readonly checks: Pick<CallChecks, "isForwarded">;
  headerOf(block: BlockId): HeaderFields | undefined;
  /** Returns the environment that a node gives to calls, if it is known. */
  knownDefaults(node: string, block: BlockId): NodeDefaults | undefined;
}

/** A call whose answer ended, at a block of which all writes are known. */
export interface EndedCall {
  readonly key: string;
  readonly method: CallMethod;
  readonly block: BlockId;
}

/** More of them would delay the simulations of clients. */
const MAX_RUNNING = 32;
const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** A price makes the result depend on the base fee, which clients treat differently in calls. */
const PRICES = ["gasPrice", "maxFeePerGas", "maxPriorityFeePerGas", "maxFeePerBlobGas"] as const;

/** Whether a call can be executed again: it names no price, and the node formats bytes as forebay does. */
export const isRepeatableCall = (key: string, body: Uint8Array, result: Data): boolean => {
  const [call] = paramsOfKey(key);
  const hasPrice = typeof call === "object" && call !== null && PRICES.some((price) => price in call);
  return !hasPrice && decoder.decode(body) === JSON.stringify(result);
};

/** Executes calls again whose answers have ended, if all values that they read are known. No node is asked. */
export class CallReruns {
  readonly #options: CallRerunsOptions;
  #running = 0;

  constructor(options: CallRerunsOptions) {
    this.#options = options;
  }

  /** Returns undefined at once if the call cannot be executed. The promise has undefined if a value is not known. */
  rerun(call: EndedCall, ended: CallResult): Promise<CallResult | undefined> | undefined {
    const { values, knownDefaults, checks } = this.#options;
    const defaults = knownDefaults(ended.node, call.block);
    if (!ended.isRepeatable || defaults === undefined || this.#running >= MAX_RUNNING) {
      return undefined;
    }
    const isReady = values.isReadable(call.block) && hasHeaderValues(ended.reads, defaults);
    return isReady && !checks.isForwarded(call.key, call.block) ? this.#run(call, ended, defaults) : undefined;
  }

  async #run(call: EndedCall, ended: CallResult, defaults: NodeDefaults): Promise<CallResult | undefined> {
    const { generation } = this.#options.follower;
    this.#running++;
    try {
      const run = await runOnKnownState(this.#options, { ...call, expected: ended.reads, gasCap: defaults.gas });
      const answer = run.kind === "done" ? this.#answerOf(call, ended, run.outcome) : undefined;
      const isCurrent = generation === this.#options.follower.generation && this.#options.values.isReadable(call.block);
      return answer !== undefined && isCurrent && hasHeaderValues(answer.reads, defaults) ? answer : undefined;
    } finally {
      this.#running--;
    }
  }

  #answerOf({ block }: EndedCall, { node }: CallResult, outcome: CallOutcome): CallResult | undefined {
    const { follower, never, headerOf } = this.#options;
    const header = resultHeader(headerOf(block));
    const reads = callReads(outcome.reads);
    const isExcluded = never.size > 0 && [...reads.addresses].some((address) => never.has(address));
    if (header === undefined || !outcome.holdsWithLessGas || isExcluded) {
      return undefined;
    }
    const body = encoder.encode(JSON.stringify(outcome.result));
    return { body, block, reads, header, generation: follower.generation, node, isRepeatable: true };
  }
}

/** Whether the node takes the values of all opcodes that ran from the block's header, or from its ancestors. */
const hasHeaderValues = ({ blockOpcodes }: CallReads, { fromHeader }: NodeDefaults): boolean =>
  [...blockOpcodes].every((opcode) => opcode === "BLOCKHASH" || fromHeader.has(opcode));
