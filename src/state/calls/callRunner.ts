import type { BlockId, HeaderFields } from "../../core/heads.ts";
import type { StateKeys } from "../../core/stateReader.ts";
import { type Address, isAddress, isQuantity, ZERO_ADDRESS } from "../../ethereum/hex.ts";
import type { StateFollower } from "../stateFollower.ts";
import type { StateKey } from "../stateKey.ts";
import type { ValueStore } from "../store/valueStore.ts";
import type { CallChecks } from "./callChecks.ts";
import {
  type CallReads,
  type CallResult,
  callReads,
  isProvable,
  readsOneOf,
  resultHeader,
  valuesRead,
} from "./callResult.ts";
import { type BlockCall, type CallOutcome, fieldsOfCall, paramsOfKey, type RunCall } from "./callRun.ts";
import type { Refusal } from "./callTable.ts";
import type { NodeDefaults, NodeDefaultsCache } from "./nodeDefaults.ts";
import { RunState, type RunStateOptions } from "./runState.ts";

export interface CallRunnerOptions extends RunStateOptions {
  readonly values: Pick<ValueStore, "get" | "code" | "hasProof" | "isReadable">;
  readonly follower: Pick<StateFollower, "generation">;
  readonly defaults: Pick<NodeDefaultsCache, "known">;
  /** Accounts whose values are always read from a node. */
  readonly never: ReadonlySet<Address>;
  readonly checks: Pick<CallChecks, "isForwarded">;
  readonly run: RunCall;
  headerOf(block: BlockId): HeaderFields | undefined;
  /** Whether no node alone states what a run takes from the header, or the rules of its block. */
  isCertain(header: HeaderFields): boolean;
  /** Removes a node's response to a call from the cache. */
  forget(call: BlockCall): void;
}

/** A call to execute on the known state after a block. Its generation is that before the node was asked. */
export interface KnownCall extends BlockCall, Pick<CallResult, "node" | "generation"> {
  /** The bytes that the node returned. Undefined: the call may be executed again without a node. */
  readonly body?: Uint8Array;
  /** The reads of an earlier execution. */
  readonly expected: CallReads | undefined;
}

/** The answer to a call, or the values that are not known, or why the result may not answer. */
export type KnownRun =
  /** `stated`: values on the word of nodes. Their proofs would prove the answer. */
  | { readonly kind: "answer"; readonly answer: CallResult; readonly stated: readonly StateKey[] }
  | { readonly kind: "missing"; readonly keys: readonly StateKey[] }
  | { readonly kind: "refused"; readonly refusal: Refusal };

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** A price makes the result depend on the base fee, which clients treat differently in calls. */
const PRICES = ["gasPrice", "maxFeePerGas", "maxPriorityFeePerGas", "maxFeePerBlobGas"] as const;

/** Half of what geth gives to a call that names no gas. */
const LEAST_GAS = 25_000_000n;
/** Calls that are executed again. More of them would delay the simulations of clients. */
const MAX_RERUNS = 32;

/** Executes calls on known values alone, and decides whether a result may answer. No node is asked. */
export class CallRunner {
  readonly #options: CallRunnerOptions;
  #reruns = 0;

  constructor(options: CallRunnerOptions) {
    this.#options = options;
  }

  /** Executes a call once. `gasCap`: the gas of a call that names none, and the largest gas of a call. Never rejects. */
  async run(call: KnownCall, gasCap: bigint): Promise<KnownRun> {
    const { run } = this.#options;
    const { key, method, block, expected } = call;
    const state = new RunState(this.#options, block, expected && expectedKeys(expected, key));
    let outcome: CallOutcome;
    try {
      // The bytes of a Buffer would be a part of a larger one, which a message to a thread copies as a whole.
      const paramsText = encoder.encode(JSON.stringify(paramsOfKey(key)));
      outcome = await run({ method, paramsText, block, source: state, gasCap });
    } catch {
      return state.missing === undefined ? refused("failed") : { kind: "missing", keys: state.missing };
    }
    const reads = callReads(outcome.reads);
    const guessed = state.guessesAmong(reads);
    if (guessed.length > 0) {
      return { kind: "missing", keys: guessed };
    }
    const mayProve = isProvable(outcome.reads) && isFree(call) && hasEnoughGas(key, gasCap);
    return this.#judge(call, outcome, mayProve ? state.withoutProof(valuesRead(reads)) : undefined);
  }

  /**
   * Executes a call again whose answer ended, at a block of which all writes are known. Returns undefined at once if it cannot be
   * executed. The promise has undefined if a value is not known.
   */
  rerun(call: BlockCall, ended: CallResult): Promise<CallResult | undefined> | undefined {
    const { values, defaults, checks } = this.#options;
    const known = defaults.known(ended.node, call.block);
    if (!ended.isRepeatable || known === undefined || this.#reruns >= MAX_RERUNS) {
      return undefined;
    }
    const isReady = values.isReadable(call.block) && hasHeaderValues(ended.reads, known);
    return isReady && !checks.isForwarded(call.key, call.block) ? this.#rerun(call, ended, known) : undefined;
  }

  async #rerun({ key, method, block }: BlockCall, { node, reads }: CallResult, defaults: NodeDefaults) {
    const { generation } = this.#options.follower;
    this.#reruns++;
    const call = { key, method, block, node, generation, expected: reads };
    const run = await this.run(call, defaults.gas).finally(() => this.#reruns--);
    return run.kind === "answer" && hasHeaderValues(run.answer.reads, defaults) ? run.answer : undefined;
  }

  /** Decides whether the outcome of an execution may answer. `stated`: undefined if no proof of values proves it. */
  #judge(
    call: KnownCall,
    { result, holdsWithLessGas, reads: readSet }: CallOutcome,
    stated: readonly StateKey[] | undefined,
  ): KnownRun {
    const { follower, values, never, checks, headerOf, isCertain, forget } = this.#options;
    const { key, block, node, generation, body } = call;
    const fields = headerOf(block);
    const header = resultHeader(fields);
    if (
      fields === undefined ||
      header === undefined ||
      generation !== follower.generation ||
      !values.isReadable(block)
    ) {
      return refused("late");
    }
    const text = JSON.stringify(result);
    if (body !== undefined && decoder.decode(body).toLowerCase() !== text) {
      if (readSet.blockHashes.length > 0) {
        // The node's bytes may be of a BLOCKHASH that was zero (CallChecks).
        forget(call);
      }
      return refused("mismatch");
    }
    if (checks.isForwarded(key, block)) {
      return refused("forwarded");
    }
    if (!holdsWithLessGas) {
      return refused("gas");
    }
    const reads = callReads(readSet);
    if (readsOneOf(reads, never)) {
      return refused("never");
    }
    const isRepeatable = body === undefined || (isFree(call) && decoder.decode(body) === text);
    const answer = {
      ...{ body: body ?? encoder.encode(text), block, reads, header, generation, node, isRepeatable },
      isProven: stated?.length === 0 && isCertain(fields),
    };
    return { kind: "answer", answer, stated: stated ?? [] };
  }
}

const refused = (refusal: Refusal) => ({ kind: "refused", refusal }) as const;

/** The engine reads the sender's account, also if the code of the call does not. */
const expectedKeys = ({ addresses, keys }: CallReads, key: string): StateKeys => {
  const { from } = fieldsOfCall(key);
  return {
    accounts: [...new Set([...addresses, isAddress(from) ? from : ZERO_ADDRESS])],
    slots: keys.flatMap(({ address, slot }) => (slot === undefined ? [] : [[address, slot] as const])),
    blockHashes: [],
  };
};

/** Whether a call has the same result whatever the base fee is. */
const isFree = ({ method, key }: BlockCall): boolean =>
  method === "eth_call" && !PRICES.some((price) => price in fieldsOfCall(key));

/**
 * Whether the gas of a run is that of the call, or more than it probably needs. A node that gives calls little gas could choose
 * what they return.
 */
const hasEnoughGas = (key: string, gasCap: bigint): boolean => {
  const { gas } = fieldsOfCall(key);
  return gasCap >= LEAST_GAS || (isQuantity(gas) && BigInt(gas) <= gasCap);
};

/** Whether the node takes the values of all opcodes that ran from the block's header, or from its ancestors. */
const hasHeaderValues = ({ blockOpcodes }: CallReads, { fromHeader }: NodeDefaults): boolean =>
  [...blockOpcodes].every((opcode) => opcode === "BLOCKHASH" || fromHeader.has(opcode));
