import type { UnitsOf } from "../../access/providerUnits.ts";
import type { BlockId } from "../../core/heads.ts";
import { NodeError } from "../../core/node.ts";
import type { StateFetch, StateOutcomes } from "../../core/stateFetch.ts";
import { type Hash, isData, parseData } from "../../ethereum/hex.ts";
import type { Call } from "../../jsonrpc/call.ts";
import { unavailable } from "../../jsonrpc/rpcError.ts";
import type { StateKey } from "../stateKey.ts";
import { ZERO_VALUE } from "../stateKey.ts";
import {
  bulkCalls,
  isBulkReadable,
  isBulkUnsupported,
  MAX_KEYS,
  parseSingle,
  proofCalls,
  type SharedCall,
  singleCall,
} from "./stateRequests.ts";

/** Values that nodes returned. */
export interface FetchedValues extends StateOutcomes {
  /** 64 digits of hex, of a code its hash. A key without a value could not be read. */
  readonly values: ReadonlyMap<StateKey, string>;
  /** Why the other keys have no value. */
  readonly errors: ReadonlyMap<StateKey, Error>;
  /** The codes that were read one by one, by their hash: 64 digits of hex. */
  readonly codes: ReadonlyMap<string, Uint8Array>;
  /** Of the further calls. */
  readonly outcomes: readonly unknown[];
  /** The price of the calls. */
  readonly units: number;
}

/** `call`: one eth_call with overridden codes. `proof`: eth_getProof of each account. */
type SharedWay = "call" | "proof";

/** Calls of which each reads many keys, and keys that are read one by one. */
interface Plan {
  readonly way?: SharedWay | undefined;
  readonly shared: readonly SharedCall[];
  readonly single: readonly StateKey[];
}

interface ReadOptions {
  /** Calls that are sent with the first batch. */
  readonly further?: readonly Call[];
  readonly fetch: StateFetch;
  readonly plan: (keys: readonly StateKey[]) => Plan;
  /** Receives the units of each batch of calls before it is sent. */
  readonly onSpent?: (units: number) => void;
}

/** One read, with what it has found. */
interface RunningRead extends ReadOptions {
  readonly block: BlockId;
  readonly values: Map<StateKey, string>;
  readonly errors: Map<StateKey, Error>;
  readonly codes: Map<string, Uint8Array>;
  /** What each batch returned. */
  readonly batches: StateOutcomes[];
  units: number;
}

/** Nodes that do not support a way to read many values are asked again after this time. */
const UNSUPPORTED_MS = 600_000;
const SLOT_METHOD = "eth_getStorageAt";

/** Returns the units of one slot, if this number of slots is read together. */
export const unitsOfSlot = (slots: number, unitsOf: UnitsOf): number =>
  Math.min(unitsOf(SLOT_METHOD), (Math.ceil(slots / MAX_KEYS) * unitsOf("eth_call")) / Math.max(1, slots));

/**
 * Reads state after one block from nodes, by the requests that they support (docs/reference/state.md, Requests for state). One
 * eth_call reads many values, else eth_getProof, else each value has a call of its own. A nonce always has.
 */
export class StateFetcher {
  readonly #fetch: StateFetch;
  readonly #unitsOf: UnitsOf;
  readonly #nowMs: () => number;
  /** The time until which the nodes do not support a way. */
  readonly #unsupportedUntilMs: Record<SharedWay, number> = { call: 0, proof: 0 };

  constructor(fetch: StateFetch, unitsOf: UnitsOf, nowMs: () => number = () => performance.now()) {
    this.#fetch = fetch;
    this.#unitsOf = unitsOf;
    this.#nowMs = nowMs;
  }

  /** Returns the units that `read` of these keys costs now. */
  unitsFor(keys: readonly StateKey[], { hash }: BlockId): number {
    return this.#unitsOfCalls(callsOf(this.#planBulk(keys, hash), hash));
  }

  /** Reads values in bulk. `onSpent` receives the units of each batch of calls. Never rejects. */
  read(keys: readonly StateKey[], block: BlockId, onSpent: (units: number) => void): Promise<FetchedValues> {
    const plan = (missing: readonly StateKey[]) => this.#planBulk(missing, block.hash);
    return this.#read(keys, block, { fetch: settled(this.#fetch), plan, onSpent });
  }

  /** Reads values one by one, to confirm what another way returned. Never rejects. */
  readSingly(keys: readonly StateKey[], block: BlockId, onSpent: (units: number) => void): Promise<FetchedValues> {
    return this.#read(keys, block, { fetch: settled(this.#fetch), plan: singly, onSpent });
  }

  /**
   * Reads values for an execution: of a code, the bytes too. All calls are one batch, with further ones. One eth_call reads all slots,
   * if that costs fewer units than to read each one. Rejects if no node is available.
   */
  fetch(keys: readonly StateKey[], block: BlockId, further: readonly Call[] = []): Promise<FetchedValues> {
    const plan = (missing: readonly StateKey[]) => this.#planSlots(missing, block.hash);
    return this.#read(keys, block, { further, fetch: this.#fetch, plan });
  }

  async #read(keys: readonly StateKey[], block: BlockId, options: ReadOptions): Promise<FetchedValues> {
    const { further = [] } = options;
    const found = { values: new Map(), errors: new Map(), codes: new Map() };
    const read: RunningRead = { ...options, block, ...found, batches: [], units: 0 };
    let outcomes: readonly unknown[] = [];
    let missing = keys;
    for (let calls = further; missing.length + calls.length > 0; calls = []) {
      const sent = await this.#send(read, missing, calls);
      outcomes = calls === further ? sent.outcomes : outcomes;
      missing = sent.unsupported;
    }
    const { batches, units } = read;
    const [first] = batches;
    return {
      ...{ ...found, outcomes, units },
      node: batches.every(({ node }) => node === first?.node) ? first?.node : undefined,
      isAgreed: batches.some(({ isAgreed }) => isAgreed === false) ? false : first?.isAgreed,
    };
  }

  /** Sends one batch. Returns the outcomes of the further calls, and the keys of calls that the nodes do not support. */
  async #send(read: RunningRead, keys: readonly StateKey[], further: readonly Call[]) {
    const { block, batches } = read;
    const plan = read.plan(keys);
    const calls = callsOf(plan, block.hash, further);
    const price = this.#unitsOfCalls(calls);
    read.units += price;
    read.onSpent?.(price);
    const batch = await read.fetch(calls);
    batches.push(batch);
    const { outcomes } = batch;
    const { way, shared, single } = plan;
    for (const [index, key] of single.entries()) {
      addSingle(read, key, outcomes[index]);
    }
    const ofShared = outcomes.slice(single.length + further.length);
    const unsupported = shared.flatMap((each, index) => addShared(read, each, ofShared[index]));
    if (way !== undefined && unsupported.length > 0) {
      this.#unsupportedUntilMs[way] = this.#nowMs() + UNSUPPORTED_MS;
    }
    return { outcomes: outcomes.slice(single.length, single.length + further.length), unsupported };
  }

  /** Plans to read most keys by the best way that may be supported, nonces and a few others one by one. */
  #planBulk(keys: readonly StateKey[], hash: Hash): Plan {
    const way = this.#supports("call") ? "call" : this.#supports("proof") ? "proof" : undefined;
    const isShared = (key: StateKey) => key.field !== "nonce" && (way === "proof" || isBulkReadable(key));
    return planOf(keys, hash, way, isShared);
  }

  /** Plans to read slots by one call, if that costs less, and other keys one by one. */
  #planSlots(keys: readonly StateKey[], hash: Hash): Plan {
    const isShared = (key: StateKey) => key.field === "slot" && isBulkReadable(key);
    const slots = keys.filter(isShared).length;
    const isCheaper = slots > 1 && unitsOfSlot(slots, this.#unitsOf) < this.#unitsOf(SLOT_METHOD);
    return planOf(keys, hash, isCheaper && this.#supports("call") ? "call" : undefined, isShared);
  }

  #supports(way: SharedWay): boolean {
    return this.#unsupportedUntilMs[way] <= this.#nowMs();
  }

  #unitsOfCalls(calls: readonly Call[]): number {
    return calls.reduce((sum, { method }) => sum + this.#unitsOf(method), 0);
  }
}

const singly = (keys: readonly StateKey[]): Plan => ({ shared: [], single: keys });

const planOf = (
  keys: readonly StateKey[],
  hash: Hash,
  way: SharedWay | undefined,
  isShared: (key: StateKey) => boolean,
): Plan =>
  way === undefined
    ? singly(keys)
    : {
        way,
        shared: (way === "call" ? bulkCalls : proofCalls)(keys.filter(isShared), hash),
        single: keys.filter((key) => !isShared(key)),
      };

/** Returns the calls in the order of their outcomes. */
const callsOf = ({ single, shared }: Plan, hash: Hash, further: readonly Call[] = []): readonly Call[] => [
  ...single.map((key) => singleCall(key, hash)),
  ...further,
  ...shared.map(({ call }) => call),
];

/** Returns a fetch that never rejects. If no node is available, the caller tries again later. */
const settled =
  (fetch: StateFetch): StateFetch =>
  (calls) =>
    fetch(calls).catch((error) => ({
      outcomes: calls.map(() => new NodeError("unreachable", "", String(error))),
    }));

/** Adds the values of one call. Returns its keys if the nodes do not support it. */
const addShared = ({ values, errors }: RunningRead, shared: SharedCall, outcome: unknown): readonly StateKey[] => {
  const found = shared.parse(outcome);
  if (found === undefined && isBulkUnsupported(outcome)) {
    return shared.keys;
  }
  for (const key of shared.keys) {
    const value = found?.get(key);
    if (value === undefined) {
      errors.set(key, outcome as Error);
    } else {
      values.set(key, value);
    }
  }
  return [];
};

/** Adds the value of a result, and of a code the bytes. */
const addSingle = ({ values, errors, codes }: RunningRead, key: StateKey, outcome: unknown): void => {
  const value = parseSingle(key, outcome);
  if (value === undefined) {
    // Clients see it: it is no fault of forebay.
    const invalid = `a node returned an invalid ${key.field === "slot" ? "storage value" : "account"}`;
    errors.set(key, outcome instanceof Error ? outcome : unavailable(invalid));
    return;
  }
  values.set(key, value);
  if (key.field === "code" && value !== ZERO_VALUE && isData(outcome)) {
    codes.set(value, parseData(outcome));
  }
};
