import { type Grade, weakestGrade } from "../../core/grade.ts";
import type { BlockId, HeaderFields } from "../../core/heads.ts";
import type { StateKeys } from "../../core/stateReader.ts";
import { isAddress, isQuantity, ZERO_ADDRESS } from "../../ethereum/hex.ts";
import type { BlockState } from "../blockState.ts";
import type { StateFollower } from "../stateFollower.ts";
import type { StateKey } from "../stateKey.ts";
import type { ValueStore } from "../store/valueStore.ts";
import type { CallChecks } from "./callChecks.ts";
import { type CallReads, type CallResult, callReads, isProvable, resultHeader, valuesRead } from "./callResult.ts";
import { type BlockCall, type CallOutcome, fieldsOfCall, paramsTextOfKey, type RunCall } from "./callRun.ts";
import type { Refusal } from "./callTable.ts";
import type { NodeDefaults, NodeDefaultsCache } from "./nodeDefaults.ts";

export interface CallRunnerOptions {
  readonly values: Pick<ValueStore, "isReadable">;
  readonly follower: Pick<StateFollower, "generation">;
  readonly defaults: Pick<NodeDefaultsCache, "known">;
  readonly checks: Pick<CallChecks, "isForwarded">;
  readonly run: RunCall;
  /** Returns the state after a block from known values alone. */
  stateAt(block: BlockId, expected: StateKeys | undefined): BlockState;
  headerOf(block: BlockId): HeaderFields | undefined;
  /** Whether no node alone states what a run takes from the header, or the rules of its block. */
  isCertain(header: HeaderFields): boolean;
  /** Removes a node's response to a call from the cache. */
  forget(call: BlockCall): void;
}

/** A call to execute on the known state after a block. Its generation is that before the node was asked. */
export interface KnownCall extends BlockCall, Pick<CallResult, "node" | "generation"> {
  /** The bytes that the node returned. Undefined: the call is executed without a node's result. */
  readonly body?: Uint8Array | undefined;
  /** The reads of an earlier execution. */
  readonly expected: CallReads | undefined;
}

/** The answer to a call, or the values that are not known, or why the result may not answer. */
export type KnownRun =
  /** `unproven`: the values whose proofs would prove the answer. */
  | { readonly kind: "answer"; readonly answer: CallResult; readonly unproven: readonly StateKey[] }
  | { readonly kind: "missing"; readonly keys: readonly StateKey[] }
  | { readonly kind: "refused"; readonly refusal: Refusal };

/** What an execution returned, as far as it decides whether the result may answer. */
interface RunResult extends Pick<CallOutcome, "result" | "holdsWithLessGas"> {
  readonly reads: CallReads;
  /** The call has the same result whatever the base fee is. */
  readonly isFree: boolean;
  readonly grade: Grade;
  readonly unproven: readonly StateKey[];
}

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** A price makes the result depend on the base fee, which clients treat differently in calls. */
const PRICES = ["gasPrice", "maxFeePerGas", "maxPriorityFeePerGas", "maxFeePerBlobGas"] as const;

/** Half of what geth gives to a call that names no gas. */
const LEAST_GAS = 25_000_000n;
/** Calls that are executed again. More of them would delay the simulations of clients. */
const MAX_RUNNING = 32;

/** Executes calls on known values alone, and decides whether a result may answer. No node is asked. */
export class CallRunner {
  readonly #options: CallRunnerOptions;
  #running = 0;

  constructor(options: CallRunnerOptions) {
    this.#options = options;
  }

  /** Executes a call once. `gasCap`: the gas of a call that names none, and the largest gas of a call. Never rejects. */
  async run(call: KnownCall, gasCap: bigint): Promise<KnownRun> {
    const { run, stateAt } = this.#options;
    const { key, method, block, expected } = call;
    const fields = fieldsOfCall(key);
    const state = stateAt(block, expected && expectedKeys(expected, fields));
    let outcome: CallOutcome;
    try {
      // The bytes of a Buffer would be a part of a larger one, which a message to a thread copies as a whole.
      const paramsText = encoder.encode(paramsTextOfKey(key));
      outcome = await run({ method, paramsText, block, source: state, gasCap });
    } catch {
      return state.missing === undefined ? refused("failed") : { kind: "missing", keys: state.missing };
    }
    const reads = callReads(outcome.reads);
    const guessed = state.grades.guessesAmong(reads);
    if (guessed.length > 0) {
      return { kind: "missing", keys: guessed };
    }
    const isFree = method === "eth_call" && !PRICES.some((price) => price in fields);
    if (!isFree && call.body === undefined) {
      return refused("mismatch");
    }
    const mayProve = isFree && isProvable(outcome.reads, reads) && hasEnoughGas(fields, gasCap);
    const read = valuesRead(reads);
    const grade = weakestGrade([state.grades.weakestOf(read), mayProve ? "proven" : "checked"]);
    const unproven = mayProve ? state.grades.unprovenAmong(read) : [];
    return this.#answerOf(call, { ...outcome, reads, isFree, grade, unproven });
  }

  /**
   * Executes a call again whose answer ended, at a block of which all writes are known. Returns undefined at once if it cannot be
   * executed. The promise has undefined if a value is not known.
   */
  executeAgain(call: BlockCall, ended: CallResult): Promise<CallResult | undefined> | undefined {
    const { values, defaults, checks } = this.#options;
    const known = defaults.known(ended.node, call.block);
    if (!ended.isRepeatable || known === undefined || this.#running >= MAX_RUNNING) {
      return undefined;
    }
    const isReady = values.isReadable(call.block) && hasHeaderValues(ended.reads, known);
    return isReady && !checks.isForwarded(call.key, call.block) ? this.#executeAgain(call, ended, known) : undefined;
  }

  async #executeAgain({ key, method, block }: BlockCall, { node, reads }: CallResult, defaults: NodeDefaults) {
    const { generation } = this.#options.follower;
    this.#running++;
    const call = { key, method, block, node, generation, expected: reads };
    const run = await this.run(call, defaults.gas).finally(() => this.#running--);
    return run.kind === "answer" && hasHeaderValues(run.answer.reads, defaults) ? run.answer : undefined;
  }

  /** Decides whether the result of an execution may answer. */
  #answerOf(call: KnownCall, ran: RunResult): KnownRun {
    const { follower, values, checks, headerOf, isCertain, forget } = this.#options;
    const { key, block, node, generation, body } = call;
    const { result, holdsWithLessGas, reads, isFree, grade, unproven } = ran;
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
      if (reads.blockOpcodes.has("BLOCKHASH")) {
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
    const isRepeatable = isFree && (body === undefined || decoder.decode(body) === text);
    const answer: CallResult = {
      ...{ body: body ?? encoder.encode(text), block, reads, header, generation, node, isRepeatable },
      grade: isCertain(fields) ? grade : weakestGrade([grade, "checked"]),
    };
    return { kind: "answer", answer, unproven };
  }
}

type CallFields = ReturnType<typeof fieldsOfCall>;

const refused = (refusal: Refusal) => ({ kind: "refused", refusal }) as const;

/** The engine reads the sender's account, also if the code of the call does not. */
const expectedKeys = ({ addresses, keys }: CallReads, { from }: CallFields): StateKeys => ({
  accounts: [...new Set([...addresses, isAddress(from) ? from : ZERO_ADDRESS])],
  slots: keys.flatMap(({ address, slot }) => (slot === undefined ? [] : [[address, slot] as const])),
  blockHashes: [],
});

/**
 * Whether the gas of a run is that of the call, or more than it probably needs. A node that gives calls little gas could choose
 * what they return.
 */
const hasEnoughGas = ({ gas }: CallFields, gasCap: bigint): boolean =>
  gasCap >= LEAST_GAS || (isQuantity(gas) && BigInt(gas) <= gasCap);

/** Whether the node takes the values of all opcodes that ran from the block's header, or from its ancestors. */
const hasHeaderValues = ({ blockOpcodes }: CallReads, { fromHeader }: NodeDefaults): boolean =>
  [...blockOpcodes].every((opcode) => opcode === "BLOCKHASH" || fromHeader.has(opcode));
