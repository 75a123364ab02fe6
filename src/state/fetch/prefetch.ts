import { NodeError } from "../../core/node.ts";
import type { PlainCall } from "../../core/stateReader.ts";
import { type Data, type Hash, isAddress, isData, parseData } from "../../ethereum/hex.ts";
import { type Call, createCall } from "../../jsonrpc/call.ts";
import { CODES, RpcError } from "../../jsonrpc/rpcError.ts";
import { accountKeys, keyName, type StateField, type StateKey, slotKey } from "../stateKey.ts";
import type { FoundValue } from "./foundValues.ts";
import { parseSingle } from "./stateRequests.ts";

const MAX_CALLS = 16;
const REFUSED = /not (found|available|supported|allowed|enabled|implemented)|unsupported|does not exist|disabled/i;

/** Calls that will be executed next, as the client wrote them. */
export interface PrefetchHint {
  readonly calls: readonly PlainCall[];
  readonly stateOverrides: unknown;
}

/** The state that nodes predict. */
export interface PredictedState {
  /** Predicted accounts and slots with their values before the call. */
  readonly traced: readonly FoundValue[];
  /** Predicted keys without values. Their values must be fetched. */
  readonly listed: readonly StateKey[];
}

interface PrefetchPlan {
  readonly calls: readonly Call[];
  read(outcomes: readonly unknown[]): PredictedState;
}

/** Whether the nodes support a method. `undefined` before the first clear outcome. */
type Support = boolean | undefined;

/**
 * Creates a planner of state prefetches. A plan predicts the state of calls with `debug_traceCall` or `eth_createAccessList`.
 * The first plan tries both methods. Later plans use the methods that nodes support.
 */
export const createPrefetch = (): ((block: Hash, hint: PrefetchHint) => PrefetchPlan) => {
  const support: { trace: Support; list: Support } = { trace: undefined, list: undefined };

  return (block, { calls, stateOverrides }) => {
    const overridden = overriddenAddresses(stateOverrides);
    // Some nodes report the effect of an authorization as if the account had been so before the call.
    const plain = calls.filter(({ authorizationList }) => authorizationList === undefined).slice(0, MAX_CALLS);
    const traces = support.trace === false ? [] : plain.map((call) => traceCall(block, call, stateOverrides));
    // A trace contains more than an access list.
    const usesLists = support.trace !== true && support.list !== false;
    const lists = usesLists ? plain.map((call) => accessListCall(block, call, stateOverrides)) : [];
    return {
      calls: [...traces, ...lists],
      read: (outcomes) => {
        const fromTraces = outcomes.slice(0, traces.length);
        const fromLists = outcomes.slice(traces.length);
        support.trace = updateSupport(support.trace, fromTraces);
        support.list = updateSupport(support.list, fromLists);
        // A trace reports overridden accounts with the overrides, not with their values in the state.
        const traced = parseAll(fromTraces, parsePrestate).filter(({ key }) => !overridden.has(key.address));
        const listed = parseAll(fromLists, parseAccessList);
        return { traced, listed: [...new Map(listed.map((key) => [keyName(key), key])).values()] };
      },
    };
  };
};

const overriddenAddresses = (stateOverrides: unknown): ReadonlySet<string> =>
  new Set(Object.keys(stateOverrides ?? {}).map((address) => address.toLowerCase()));

/** Updates the support of a method. A call that fails does not change it, a call that is refused does. */
const updateSupport = (before: Support, outcomes: readonly unknown[]): Support => {
  if (outcomes.some((outcome) => !(outcome instanceof Error))) {
    return true;
  }
  return outcomes.some(isRefused) ? false : before;
};

const isRefused = (outcome: unknown): boolean => {
  if (outcome instanceof NodeError && (outcome.kind === "unsupportedMethod" || outcome.kind === "unauthorized")) {
    return true;
  }
  if (!(outcome instanceof RpcError)) {
    return false;
  }
  return outcome.code === CODES.METHOD_NOT_FOUND || REFUSED.test(outcome.message);
};

/** Parses predictions. The execution fetches what a prediction does not contain, so an invalid one counts as empty. */
const parseAll = <T>(outcomes: readonly unknown[], parse: (value: unknown) => readonly T[]): readonly T[] =>
  outcomes.flatMap((outcome) => {
    try {
      return outcome instanceof Error ? [] : parse(outcome);
    } catch {
      // The node's response has another form than its method defines.
      return [];
    }
  });

const at = (block: Hash) => ({ blockHash: block });

/** Returns the call of geth's prestateTracer, which returns the accounts of a call with their values. */
const traceCall = (block: Hash, call: PlainCall, stateOverrides: unknown): Call =>
  createCall("debug_traceCall", [
    call,
    at(block),
    { tracer: "prestateTracer", ...(stateOverrides === undefined ? {} : { stateOverrides }) },
  ]);

/** Returns the call that reads the access list of a call. */
const accessListCall = (block: Hash, call: PlainCall, stateOverrides: unknown): Call =>
  createCall(
    "eth_createAccessList",
    stateOverrides === undefined ? [call, at(block)] : [call, at(block), stateOverrides],
  );

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null;

const invalidPrestate = (): Error => new TypeError("a prestate has another form");

/** Parses one value of a prestate. */
const digitsOf = (field: StateField, value: unknown): string => {
  const digits = parseSingle({ field }, value);
  if (digits === undefined) {
    throw invalidPrestate();
  }
  return digits;
};

const tracedValue = (key: StateKey, result: unknown): FoundValue => ({
  key,
  value: digitsOf(key.field, result),
  code: key.field === "code" && isData(result) ? parseData(result) : undefined,
});

/** Parses a result of prestateTracer. It omits values of zero. Throws if the result has another form. */
const parsePrestate = (value: unknown): readonly FoundValue[] => {
  if (!isObject(value)) {
    throw invalidPrestate();
  }
  return Object.entries(value).flatMap(([key, entry]) => {
    const address = key.toLowerCase();
    if (!isAddress(address) || !isObject(entry)) {
      throw invalidPrestate();
    }
    const { balance = "0x0", nonce = 0, code = "0x", storage = {} } = entry;
    if (typeof nonce !== "number" || !isObject(storage)) {
      throw invalidPrestate();
    }
    const results: Readonly<Record<string, unknown>> = { balance, nonce: `0x${nonce.toString(16)}`, code };
    return [
      ...accountKeys(address).map((own) => tracedValue(own, results[own.field])),
      ...Object.entries(storage).map(([slot, word]) =>
        tracedValue(slotKey(address, `0x${digitsOf("slot", slot)}`), word),
      ),
    ];
  });
};

/** Parses a result of `eth_createAccessList`. Addresses and slots are in lower case. Throws if it has another form. */
const parseAccessList = (value: unknown): readonly StateKey[] => {
  const list = isObject(value) ? Reflect.get(value, "accessList") : undefined;
  if (!Array.isArray(list)) {
    throw new TypeError("an access list has another form");
  }
  return list.flatMap((entry: unknown) => {
    const { address, storageKeys } = Object(entry) as Record<string, unknown>;
    if (!isAddress(address) || !Array.isArray(storageKeys)) {
      throw new TypeError("an access list has another form");
    }
    const account = lower(address);
    return [...accountKeys(account), ...storageKeys.map((slot) => slotKey(account, lower(String(slot) as Data)))];
  });
};

const lower = (value: Data): Data => `0x${value.slice(2).toLowerCase()}`;
