import type { UnitsOf } from "../../access/providerUnits.ts";
import type { BlockId } from "../../core/heads.ts";
import { NodeError } from "../../core/node.ts";
import type { StateFetch } from "../../core/stateReader.ts";
import { isData, parseData } from "../../ethereum/hex.ts";
import type { Call } from "../../jsonrpc/call.ts";
import { unavailable } from "../../jsonrpc/rpcError.ts";
import type { StateKey } from "../stateKey.ts";
import { ZERO_VALUE } from "../store/writtenValues.ts";
import {
  type BulkCall,
  bulkParts,
  codeHashesCall,
  isBulkReadable,
  isBulkUnsupported,
  parseBulkResult,
  parseProof,
  parseSingle,
  proofCalls,
  singleCall,
  slotsAndBalancesCall,
} from "./stateRequests.ts";

/** Values by key: 64 digits of hex, for a code its hash. A key without a value could not be read. */
export type ReadValues = ReadonlyMap<StateKey, string>;

/** Values that nodes returned for an execution. */
export interface FetchedValues {
  /** As in ReadValues, or the error of each key. */
  readonly values: ReadonlyMap<StateKey, string | Error>;
  /** The codes among them by their hash, 64 digits of hex. */
  readonly codes: ReadonlyMap<string, Uint8Array>;
  /** Of the further calls, in their order. */
  readonly outcomes: readonly unknown[];
  /** The node that gave all values. Undefined if there were several, or if its name is not known. */
  readonly node: string | undefined;
  /** Whether a second origin has stated all of them. False: a second origin is required and lacks. */
  readonly isConfirmed: boolean | undefined;
  /** The price of the calls. */
  readonly units: number;
}

/**
 * Reads values for executions after a block, and sends further calls with them. Nodes of `avoidedOrigins` are asked only if no other
 * node can answer.
 */
export type ValueFetch = (
  keys: readonly StateKey[],
  further: readonly Call[],
  block: BlockId,
  avoidedOrigins?: readonly string[],
) => Promise<FetchedValues>;

/** A call of which one result has the values of several keys. */
interface SharedCall {
  readonly call: Call;
  readonly keys: readonly StateKey[];
  parse(result: unknown): ReadValues | undefined;
}

/** `call`: one eth_call with overridden codes. `proof`: eth_getProof of each account. */
type SharedWay = "call" | "proof";

const WAYS: readonly SharedWay[] = ["call", "proof"];
/** Nodes that do not support a way to read many values are asked again after this time. */
const UNSUPPORTED_MS = 600_000;
const SLOT_METHOD = "eth_getStorageAt";

/** Returns the units of one slot, if this number of slots is read together. */
export const unitsOfSlot = (slots: number, unitsOf: UnitsOf): number =>
  Math.min(unitsOf(SLOT_METHOD), (bulkParts(Array(slots)).length * unitsOf("eth_call")) / Math.max(1, slots));

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

  /** Returns the units that reading these keys costs now. */
  unitsFor(keys: readonly StateKey[], block: BlockId): number {
    const { shared, single } = this.#plan(keys, block);
    return this.#unitsOfCalls([...shared.map(({ call }) => call), ...single.map((key) => singleCall(key, block.hash))]);
  }

  /**
   * Reads values. `onSpent` receives the units of each batch of calls. `onGiver` receives the name of the node that gave all
   * values, or undefined if there were several. Never rejects.
   */
  async read(
    keys: readonly StateKey[],
    block: BlockId,
    onSpent: (units: number) => void,
    onGiver?: (node: string | undefined) => void,
  ): Promise<ReadValues> {
    const values = new Map<StateKey, string>();
    const nodes = new AnsweringNodes();
    let missing = keys;
    while (missing.length > 0) {
      const { way, shared, single } = this.#plan(missing, block);
      const calls = [...shared.map(({ call }) => call), ...single.map((key) => singleCall(key, block.hash))];
      const outcomes = await this.#send(calls, block, onSpent, nodes);
      const failed: StateKey[] = [];
      for (const [index, each] of shared.entries()) {
        const found = each.parse(outcomes[index]);
        if (found === undefined && way !== undefined && isBulkUnsupported(outcomes[index])) {
          this.#markUnsupported(way);
          failed.push(...each.keys);
        }
        for (const [key, value] of found ?? []) {
          values.set(key, value);
        }
      }
      addSingles(values, single, outcomes.slice(shared.length));
      missing = failed;
    }
    onGiver?.(nodes.only);
    return values;
  }

  /** Reads values one by one, to confirm what another way returned. Never rejects. */
  async readSingly(keys: readonly StateKey[], block: BlockId, onSpent: (units: number) => void): Promise<ReadValues> {
    const values = new Map<StateKey, string>();
    const calls = keys.map((key) => singleCall(key, block.hash));
    addSingles(values, keys, await this.#send(calls, block, onSpent, new AnsweringNodes()));
    return values;
  }

  /**
   * Reads values for an execution: of a code, the bytes too. All calls are one batch, with `further` calls among them. One eth_call reads
   * all slots, if that costs fewer units than to read each one.
   */
  readonly fetch: ValueFetch = async (keys, further, block, avoidedOrigins) => {
    const nodes = new AnsweringNodes();
    const values = new Map<StateKey, string | Error>();
    const codes = new Map<string, Uint8Array>();
    const { bulks, single } = this.#planSlots(keys, block);
    let units = 0;
    const send = async (calls: readonly Call[]) => {
      units += this.#unitsOfCalls(calls);
      return this.#fetch(calls, block, nodes.next(), avoidedOrigins);
    };
    const addSingles = (read: readonly StateKey[], outcomes: readonly unknown[]): void => {
      for (const [index, key] of read.entries()) {
        values.set(key, parseOutcome(key, outcomes[index], codes));
      }
    };
    const calls = single.map((key) => singleCall(key, block.hash));
    const outcomes = await send([...calls, ...further, ...bulks.map(({ call }) => call)]);
    addSingles(single, outcomes);
    const ofBulks = outcomes.slice(single.length + further.length);
    const unread = bulks.flatMap((bulk, index) => addBulk(values, bulk, ofBulks[index]));
    if (unread.length > 0) {
      this.#markUnsupported("call");
      addSingles(unread, await send(unread.map((key) => singleCall(key, block.hash))));
    }
    const ofFurther = outcomes.slice(single.length, single.length + further.length);
    return { values, codes, outcomes: ofFurther, node: nodes.only, isConfirmed: nodes.isConfirmed, units };
  };

  /** Separates slots that one call reads from keys that are read one by one. */
  #planSlots(
    keys: readonly StateKey[],
    { hash }: BlockId,
  ): { bulks: readonly BulkCall[]; single: readonly StateKey[] } {
    const isShared = (key: StateKey): boolean => key.field === "slot" && isBulkReadable(key);
    const slots = keys.filter(isShared);
    return this.#isCheaper(slots.length) && this.#supports("call")
      ? {
          bulks: bulkParts(slots).map((part) => slotsAndBalancesCall(part, hash)),
          single: keys.filter((key) => !isShared(key)),
        }
      : { bulks: [], single: keys };
  }

  /** Returns the calls that read the keys now: most by the best way that may be supported, nonces and a few others one by one. */
  #plan(keys: readonly StateKey[], { hash }: BlockId) {
    const way = WAYS.find((each) => this.#supports(each));
    if (way === undefined) {
      return { way, shared: [], single: keys };
    }
    const isShared = (key: StateKey): boolean => key.field !== "nonce" && (way === "proof" || isBulkReadable(key));
    const others = keys.filter(isShared);
    const shared: SharedCall[] =
      way === "call"
        ? [
            ...bulkParts(others.filter(({ field }) => field !== "code")).map((part) =>
              slotsAndBalancesCall(part, hash),
            ),
            ...bulkParts(others.filter(({ field }) => field === "code")).map((part) => codeHashesCall(part, hash)),
          ].map((bulk) => ({ ...bulk, parse: (result) => parseBulkResult(bulk, result) }))
        : proofCalls(others, hash).map((proof) => ({ ...proof, parse: (result) => parseProof(proof, result) }));
    return { way, shared, single: keys.filter((key) => !isShared(key)) };
  }

  async #send(
    calls: readonly Call[],
    block: BlockId,
    onSpent: (units: number) => void,
    nodes: AnsweringNodes,
  ): Promise<readonly unknown[]> {
    onSpent(this.#unitsOfCalls(calls));
    try {
      return await this.#fetch(calls, block, nodes.next());
    } catch (error) {
      // No node is available: the caller tries again later.
      return calls.map(() => new NodeError("unreachable", "", String(error)));
    }
  }

  #supports(way: SharedWay): boolean {
    return this.#unsupportedUntilMs[way] <= this.#nowMs();
  }

  #markUnsupported(way: SharedWay): void {
    this.#unsupportedUntilMs[way] = this.#nowMs() + UNSUPPORTED_MS;
  }

  #isCheaper(slots: number): boolean {
    return slots > 1 && unitsOfSlot(slots, this.#unitsOf) < this.#unitsOf(SLOT_METHOD);
  }

  #unitsOfCalls(calls: readonly Call[]): number {
    return calls.reduce((sum, { method }) => sum + this.#unitsOf(method), 0);
  }
}

/** The nodes that answered several fetches. */
class AnsweringNodes {
  readonly #names: (string | undefined)[] = [];
  readonly #confirmed: (boolean | undefined)[] = [];

  /** Begins a fetch. Returns the function that receives the name of each node that it asks: the last one answers. */
  next(): (node: string | undefined, isConfirmed?: boolean) => void {
    const fetch = this.#names.length;
    return (node, isConfirmed) => {
      this.#names[fetch] = node;
      this.#confirmed[fetch] = isConfirmed;
    };
  }

  /** The name of the node that gave all outcomes. Undefined if there were several. */
  get only(): string | undefined {
    return new Set(this.#names).size === 1 ? this.#names[0] : undefined;
  }

  /** The weakest evidence of a fetch. */
  get isConfirmed(): boolean | undefined {
    return this.#confirmed.includes(false) ? false : this.#confirmed[0];
  }
}

/** Adds the values of one call. Returns its keys if the nodes do not support it. */
const addBulk = (values: Map<StateKey, string | Error>, bulk: BulkCall, outcome: unknown): readonly StateKey[] => {
  const found = parseBulkResult(bulk, outcome);
  if (found === undefined && isBulkUnsupported(outcome)) {
    return bulk.keys;
  }
  for (const key of bulk.keys) {
    values.set(key, found?.get(key) ?? (outcome as Error));
  }
  return [];
};

/** Returns the value of a result. A code is added to `codes`. */
const parseOutcome = (key: StateKey, outcome: unknown, codes: Map<string, Uint8Array>): string | Error => {
  if (outcome instanceof Error) {
    return outcome;
  }
  const value = parseSingle(key, outcome);
  if (value === undefined) {
    // Clients see it: it is no fault of forebay.
    return unavailable(`a node returned an invalid ${key.field === "slot" ? "storage value" : "account"}`);
  }
  if (key.field === "code" && value !== ZERO_VALUE && isData(outcome)) {
    codes.set(value, parseData(outcome));
  }
  return value;
};

const addSingles = (values: Map<StateKey, string>, keys: readonly StateKey[], outcomes: readonly unknown[]): void => {
  for (const [index, key] of keys.entries()) {
    const value = parseSingle(key, outcomes[index]);
    if (value !== undefined) {
      values.set(key, value);
    }
  }
};
