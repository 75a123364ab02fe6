import type { StateFetch } from "../core/stateReader.ts";
import type { Address, Hash } from "../ethereum/hex.ts";
import type { Call } from "../jsonrpc/call.ts";
import { type BulkCall, bulkParts, isBulkReadable, parseBulkResult, slotsAndBalancesCall } from "./bulkCall.ts";
import type { BulkReaderOptions } from "./bulkReader.ts";
import { isBulkUnsupported, UNSUPPORTED_MS } from "./bulkSupport.ts";
import type { UnitsOf } from "./providerUnits.ts";
import type { StateKey } from "./stateKey.ts";

const SLOT_METHOD = "eth_getStorageAt";

const keyOf = ({ params: [address, slot] }: Call): StateKey => ({
  field: "slot",
  address: address as Address,
  slot: slot as Hash,
});

const isSlotCall = (call: Call): boolean => call.method === SLOT_METHOD && isBulkReadable(keyOf(call));

/** Returns the outcome of each slot. Undefined: the nodes do not support the call. */
const slotOutcomes = (bulk: BulkCall, outcome: unknown): (readonly [StateKey, unknown])[] => {
  const values = parseBulkResult(bulk, outcome);
  const failure = isBulkUnsupported(outcome) ? undefined : outcome;
  return bulk.keys.map((key) => [key, values === undefined ? failure : `0x${values.get(key)}`]);
};

/** Returns the units of one slot, if this number of slots is read together. */
export const unitsOfSlot = (slots: number, unitsOf: UnitsOf): number =>
  Math.min(unitsOf(SLOT_METHOD), (bulkParts(Array(slots)).length * unitsOf("eth_call")) / Math.max(1, slots));

/**
 * Wraps a fetch of state, so that one eth_call reads all slots of a batch if that costs fewer units than to read each one.
 * The outcomes are those of the calls, in their order. Slots are read one by one while the nodes do not support it.
 */
export const createBulkSlotFetch = ({ fetch, unitsOf, nowMs }: BulkReaderOptions): StateFetch => {
  let unsupportedUntilMs = 0;
  const isCheaper = (slots: number): boolean => slots > 1 && unitsOfSlot(slots, unitsOf) < unitsOf(SLOT_METHOD);
  return async (calls, block, onNode, avoidedOrigins) => {
    const slots = new Map(calls.filter(isSlotCall).map((call) => [call, keyOf(call)]));
    if (!isCheaper(slots.size) || nowMs() < unsupportedUntilMs) {
      return fetch(calls, block, onNode, avoidedOrigins);
    }
    const nodes = new AnsweringNodes();
    const others = calls.filter((call) => !isSlotCall(call));
    const bulks = bulkParts([...slots.values()]).map((keys) => slotsAndBalancesCall(keys, block.hash));
    const found = await fetch([...others, ...bulks.map(({ call }) => call)], block, nodes.next(), avoidedOrigins);
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
      unsupportedUntilMs = nowMs() + UNSUPPORTED_MS;
      const singly = await fetch(unread, block, nodes.next(), avoidedOrigins);
      for (const [index, call] of unread.entries()) {
        outcomes.set(call, singly[index]);
      }
    }
    nodes.report(onNode);
    return calls.map((call) => outcomes.get(call));
  };
};

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

  /** Names the node that gave all outcomes, with the weakest evidence of a fetch. Several nodes have no name. */
  report(onNode: Parameters<StateFetch>[2]): void {
    const only = new Set(this.#names).size === 1 ? this.#names[0] : undefined;
    const isConfirmed = this.#confirmed.includes(false) ? false : this.#confirmed[0];
    if (only !== undefined || isConfirmed === false) {
      onNode?.(only, isConfirmed);
    }
  }
}
