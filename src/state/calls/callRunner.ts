import type { BlockId, HeaderFields } from "../../core/heads.ts";
import type { ReadSet } from "../../core/readSet.ts";
import { type Address, isAddress, isQuantity, ZERO_ADDRESS } from "../../ethereum/hex.ts";
import type { StateFollower } from "../stateFollower.ts";
import type { StateKey } from "../stateKey.ts";
import type { ValueStore } from "../store/valueStore.ts";
import type { CallChecks } from "./callChecks.ts";
import { type CallReads, type CallResult, callReads, isProvable, resultHeader, valuesRead } from "./callResult.ts";
import { type CallMethod, type CallOutcome, paramsOfKey, type RunCall } from "./callRun.ts";
import type { Refusal } from "./callTable.ts";
import { type ExpectedReads, KnownSource, type KnownValues, MissingValuesError } from "./knownSource.ts";

export interface CallRunnerOptions extends KnownValues {
  readonly values: Pick<ValueStore, "get" | "code" | "hasProof" | "isReadable">;
  readonly follower: Pick<StateFollower, "generation">;
  /** Accounts whose values are always read from a node. */
  readonly never: ReadonlySet<Address>;
  readonly checks: Pick<CallChecks, "isForwarded">;
  readonly run: RunCall;
  headerOf(block: BlockId): HeaderFields | undefined;
  /** Whether no node alone states what a run takes from the header, or the rules of its block. */
  isCertain(header: HeaderFields): boolean;
}

/** A call to execute on the known state after a block. */
export interface KnownCall {
  /** The canonical text of method and parameters without the block. */
  readonly key: string;
  readonly method: CallMethod;
  readonly block: BlockId;
  /** The reads of an earlier execution. */
  readonly expected: CallReads | undefined;
}

/** The outcome, or the values that are not known, or nothing if the call failed or cannot be executed here. */
export type KnownRun =
  | {
      readonly kind: "done";
      readonly outcome: CallOutcome;
      /** All values that it read follow by hashes from the header of the block, and no node chose its gas. */
      readonly isProven: boolean;
    }
  | { readonly kind: "missing"; readonly keys: readonly StateKey[] }
  | { readonly kind: "failed" };

/** The call of a result, with what the result is compared with. */
interface JudgedCall extends Pick<KnownCall, "key" | "method" | "block">, Pick<CallResult, "node" | "generation"> {
  /** The bytes that a node returned. Default: no node was asked, because the call can be executed again. */
  readonly body?: Uint8Array;
}

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** A price makes the result depend on the base fee, which clients treat differently in calls. */
const PRICES = ["gasPrice", "maxFeePerGas", "maxPriorityFeePerGas", "maxFeePerBlobGas"] as const;

/** Half of what geth gives to a call that names no gas. */
const LEAST_GAS = 25_000_000n;

/** Executes calls on known values alone, and decides whether a result may answer. No node is asked. */
export class CallRunner {
  readonly #options: CallRunnerOptions;

  constructor(options: CallRunnerOptions) {
    this.#options = options;
  }

  /** Executes a call once. `gasCap`: the gas of a call that names none, and the largest gas of a call. Never rejects. */
  async run({ key, method, block, expected }: KnownCall, gasCap: bigint): Promise<KnownRun> {
    const { run } = this.#options;
    const params = paramsOfKey(key);
    const source = new KnownSource(this.#options, block, expected && expectedReads(expected, senderOf(params)));
    try {
      // The bytes of a Buffer would be a part of a larger one, which a message to a thread copies as a whole.
      const paramsText = encoder.encode(JSON.stringify(params));
      const outcome = await run({ method, paramsText, block, source, gasCap });
      const guessed = source.guessedReads(outcome.reads);
      return guessed.length > 0
        ? { kind: "missing", keys: guessed }
        : { kind: "done", outcome, isProven: hasEnoughGas(params, gasCap) && isOnProven(source, outcome.reads) };
    } catch (error) {
      return error instanceof MissingValuesError ? { kind: "missing", keys: error.keys } : { kind: "failed" };
    }
  }

  /** Returns what an execution gives as the answer to its call, or why it may not answer. */
  resultOf(
    { key, method, block, node, generation, body }: JudgedCall,
    { outcome: { result, holdsWithLessGas, reads: readSet }, isProven }: KnownRun & { readonly kind: "done" },
  ): CallResult | Refusal {
    const { follower, values, never, checks, headerOf, isCertain } = this.#options;
    const fields = headerOf(block);
    const header = resultHeader(fields);
    if (
      fields === undefined ||
      header === undefined ||
      generation !== follower.generation ||
      !values.isReadable(block)
    ) {
      return "late";
    }
    const text = JSON.stringify(result);
    if (body !== undefined && decoder.decode(body).toLowerCase() !== text) {
      return "mismatch";
    }
    if (checks.isForwarded(key, block)) {
      return "forwarded";
    }
    if (!holdsWithLessGas) {
      return "gas";
    }
    const reads = callReads(readSet);
    if (never.size > 0 && [...reads.addresses].some((address) => never.has(address))) {
      return "never";
    }
    const isRepeatable = body === undefined || (method === "eth_call" && isRepeatableCall(key, body, text));
    return {
      ...{ body: body ?? encoder.encode(text), block, reads, header, generation, node, isRepeatable },
      isProven: isProven && method === "eth_call" && !hasPrice(key) && isCertain(fields),
    };
  }
}

/** The engine reads the sender's account, also if the code of the call does not. */
const senderOf = (params: readonly unknown[]): Address => {
  const { from } = params[0] as { readonly from?: unknown };
  return isAddress(from) ? from : ZERO_ADDRESS;
};

const expectedReads = ({ addresses, keys }: CallReads, sender: Address): ExpectedReads => ({
  accounts: addresses.has(sender) ? [...addresses] : [...addresses, sender],
  slots: keys.flatMap(({ address, slot }) => (slot === undefined ? [] : [[address, slot] as const])),
});

/**
 * Whether the gas of a run is that of the call, or more than it probably needs. A node that gives calls little gas could choose
 * what they return.
 */
const hasEnoughGas = (params: readonly unknown[], gasCap: bigint): boolean => {
  const { gas } = params[0] as { readonly gas?: unknown };
  return gasCap >= LEAST_GAS || (isQuantity(gas) && BigInt(gas) <= gasCap);
};

const isOnProven = (source: KnownSource, readSet: ReadSet): boolean =>
  isProvable(readSet) && source.hasProven(valuesRead(callReads(readSet)));

const hasPrice = (key: string): boolean => {
  const [call] = paramsOfKey(key);
  return typeof call === "object" && call !== null && PRICES.some((price) => price in call);
};

/** Whether a call can be executed again: it names no price, and the node formats bytes as forebay does. */
const isRepeatableCall = (key: string, body: Uint8Array, text: string): boolean =>
  !hasPrice(key) && decoder.decode(body) === text;
