import { NodeError } from "../core/node.ts";
import type { StateKeys } from "../core/stateReader.ts";
import type { Address, Hash } from "../ethereum/hex.ts";
import type { Call } from "../jsonrpc/call.ts";
import { CODES, RpcError } from "../jsonrpc/rpcError.ts";
import {
  accessListCall,
  type PlainCall,
  parseAccessList,
  parsePrestate,
  type TracedAccount,
  traceCall,
} from "./stateCalls.ts";

const MAX_CALLS = 16;
const REFUSED = /not (found|available|supported|allowed|enabled|implemented)|unsupported|does not exist|disabled/i;

/** Calls that are about to run, as the caller wrote them. */
export interface PrefetchHint {
  readonly calls: readonly PlainCall[];
  readonly stateOverrides: unknown;
}

/** What nodes foresee. */
interface PredictedKeys {
  /** Values as they are. */
  readonly traced: readonly TracedAccount[];
  /** Only what will be read: its values have to be asked for. */
  readonly listed: StateKeys;
}

interface PrefetchPlan {
  readonly calls: readonly Call[];
  read(outcomes: readonly unknown[]): PredictedKeys;
}

/** Two ways of asking nodes ahead. Both are tried with the first question; which of them works is remembered. */
export const createPrefetch = (): ((block: Hash, wish: PrefetchHint) => PrefetchPlan) => {
  const works = { trace: undefined as boolean | undefined, list: undefined as boolean | undefined };

  return (block, { calls, stateOverrides }) => {
    const overridden = overriddenAddresses(stateOverrides);
    // What an authorization does to an account, some nodes show as if it had been so before.
    const some = calls.filter(({ authorizationList }) => authorizationList === undefined).slice(0, MAX_CALLS);
    const traces = works.trace === false ? [] : some.map((call) => traceCall(block, call, stateOverrides));
    // Where tracing works, it says more than a list does.
    const hasList = works.trace !== true && works.list !== false;
    const lists = hasList ? some.map((call) => accessListCall(block, call, stateOverrides)) : [];
    return {
      calls: [...traces, ...lists],
      read: (outcomes) => {
        const fromTraces = outcomes.slice(0, traces.length);
        const fromLists = outcomes.slice(traces.length);
        works.trace = learn(works.trace, fromTraces);
        works.list = learn(works.list, fromLists);
        // Overridden accounts are shown as the caller wants them, not as they are.
        const traced = fromTraces.flatMap(prestateOf).filter(({ address }) => !overridden.has(address));
        return { traced, listed: keysOf(fromLists) };
      },
    };
  };
};

const overriddenAddresses = (stateOverrides: unknown): ReadonlySet<string> =>
  new Set(Object.keys(stateOverrides ?? {}).map((address) => address.toLowerCase()));

/** A call that fails says nothing about the method, one that is refused does. */
const learn = (before: boolean | undefined, outcomes: readonly unknown[]): boolean | undefined => {
  if (outcomes.some((outcome) => !(outcome instanceof Error))) return true;
  return outcomes.some(isRefused) ? false : before;
};

const isRefused = (outcome: unknown): boolean => {
  if (outcome instanceof NodeError && (outcome.kind === "unsupportedMethod" || outcome.kind === "unauthorized"))
    return true;
  if (!(outcome instanceof RpcError)) return false;
  return outcome.code === CODES.METHOD_NOT_FOUND || REFUSED.test(outcome.message);
};

/** Asking ahead is a favour: what cannot be read is asked for again when the run lacks it. */
const prestateOf = (outcome: unknown): readonly TracedAccount[] => {
  if (outcome instanceof Error) return [];
  try {
    return parsePrestate(outcome);
  } catch {
    return [];
  }
};

const keysOf = (outcomes: readonly unknown[]): StateKeys => {
  const accounts = new Set<Address>();
  const slots = new Map<string, readonly [Address, Hash]>();
  for (const outcome of outcomes) {
    for (const { address, slots: listed } of listOf(outcome)) {
      accounts.add(address);
      for (const slot of listed) slots.set(address + slot, [address, slot]);
    }
  }
  return { accounts: [...accounts], slots: [...slots.values()], blockHashes: [] };
};

const listOf = (outcome: unknown) => {
  if (outcome instanceof Error) return [];
  try {
    return parseAccessList(outcome);
  } catch {
    // As above.
    return [];
  }
};
