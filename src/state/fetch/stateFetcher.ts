import type { BlockId } from "../../core/heads.ts";
import { NodeError } from "../../core/node.ts";
import type { StateFetch } from "../../core/stateReader.ts";
import type { Call } from "../../jsonrpc/call.ts";
import type { UnitsOf } from "../providerUnits.ts";
import type { StateKey } from "../stateKey.ts";
import {
  type BulkCall,
  bulkParts,
  codeHashesCall,
  isBulkReadable,
  isBulkUnsupported,
  keyOfCall,
  parseBulkResult,
  parseProof,
  parseSingle,
  proofCalls,
  singleCall,
  slotsAndBalancesCall,
} from "./stateRequests.ts";

/** Values by key: 64 digits of hex, for a code its hash. A key without a value could not be read. */
export type ReadValues = ReadonlyMap<StateKey, string>;

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
   * Sends calls as one batch. One eth_call reads all slots of the batch, if that costs fewer units than to read each one.
   * The outcomes are those of the calls, in their order.
   */
  readonly batch: StateFetch = async (calls, block, onNode, avoidedOrigins) => {
    const slots = new Map(calls.flatMap((call) => slotOf(call)));
    if (!this.#isCheaper(slots.size) || !this.#supports("call")) {
      return this.#fetch(calls, block, onNode, avoidedOrigins);
    }
    const nodes = new AnsweringNodes();
    const others = calls.filter((call) => !slots.has(call));
    const bulks = bulkParts([...slots.values()]).map((keys) => slotsAndBalancesCall(keys, block.hash));
    const sent = [...others, ...bulks.map(({ call }) => call)];
    const found = await this.#fetch(sent, block, nodes.next(), avoidedOrigins);
    const outcomes = new Map<Call, unknown>(others.map((call, index) => [call, found[index]]));
    const bySlot = new Map(bulks.flatMap((bulk, index) => slotOutcomes(bulk, found[others.length + index])));
    const unread: Call[] = [];
    for (const [call, key] of slots) {
      const outcome = bySlot.get(key);
      if (outcome === undefined) {
        unread.push(call);
      }
      outcomes.set(call, outcome);
    }
    if (unread.length > 0) {
      this.#markUnsupported("call");
      const singly = await this.#fetch(unread, block, nodes.next(), avoidedOrigins);
      for (const [index, call] of unread.entries()) {
        outcomes.set(call, singly[index]);
      }
    }
    nodes.report(onNode);
    return calls.map((call) => outcomes.get(call));
  };

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

  /** Names the node that gave all outcomes, with the weakest evidence of a fetch. Several nodes have no name. */
  report(onNode: Parameters<StateFetch>[2]): void {
    const { only } = this;
    const isConfirmed = this.#confirmed.includes(false) ? false : this.#confirmed[0];
    if (only !== undefined || isConfirmed === false) {
      onNode?.(only, isConfirmed);
    }
  }
}

/** Returns a call with the slot that it reads, if an eth_call can read it too. */
const slotOf = (call: Call): readonly (readonly [Call, StateKey])[] => {
  const key = keyOfCall(call);
  return key?.field === "slot" && isBulkReadable(key) ? [[call, key]] : [];
};

/** Returns the outcome of each slot. Undefined: the nodes do not support the call. */
const slotOutcomes = (bulk: BulkCall, outcome: unknown): (readonly [StateKey, unknown])[] => {
  const values = parseBulkResult(bulk, outcome);
  const failure = isBulkUnsupported(outcome) ? undefined : outcome;
  return bulk.keys.map((key) => [key, values === undefined ? failure : `0x${values.get(key)}`]);
};

const addSingles = (values: Map<StateKey, string>, keys: readonly StateKey[], outcomes: readonly unknown[]): void => {
  for (const [index, key] of keys.entries()) {
    const value = parseSingle(key, outcomes[index]);
    if (value !== undefined) {
      values.set(key, value);
    }
  }
};
