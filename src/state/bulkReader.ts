import type { BlockId } from "../core/heads.ts";
import { NodeError } from "../core/node.ts";
import type { StateFetch } from "../core/stateReader.ts";
import type { Call } from "../jsonrpc/call.ts";
import { parseProof, proofCalls } from "./accountProof.ts";
import { bulkParts, codeHashesCall, isBulkReadable, parseBulkResult, slotsAndBalancesCall } from "./bulkCall.ts";
import { isBulkUnsupported, UNSUPPORTED_MS } from "./bulkSupport.ts";
import type { UnitsOf } from "./providerUnits.ts";
import { parseSingle, singleCall } from "./singleReads.ts";
import type { StateKey } from "./stateKey.ts";

export interface BulkReaderOptions {
  readonly fetch: StateFetch;
  readonly unitsOf: UnitsOf;
  readonly nowMs: () => number;
}

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

/** Reads many values after one block: by one eth_call, else by eth_getProof, else one by one. A nonce is always read alone. */
export class BulkReader {
  readonly #options: BulkReaderOptions;
  /** The time until which the nodes do not support a way. */
  readonly #unsupportedUntilMs: Record<SharedWay, number> = { call: 0, proof: 0 };

  constructor(options: BulkReaderOptions) {
    this.#options = options;
  }

  /** Returns the units that reading these keys costs now. */
  unitsFor(keys: readonly StateKey[], block: BlockId): number {
    const { shared, single } = this.#plan(keys, block);
    return this.#unitsOf([...shared.map(({ call }) => call), ...single.map((key) => singleCall(key, block.hash))]);
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
    const givers = new Set<string>();
    let missing = keys;
    while (missing.length > 0) {
      const { way, shared, single } = this.#plan(missing, block);
      const outcomes = await this.#fetch(
        [...shared.map(({ call }) => call), ...single.map(asCall(block))],
        block,
        onSpent,
        givers,
      );
      const failed: StateKey[] = [];
      for (const [index, each] of shared.entries()) {
        const found = each.parse(outcomes[index]);
        if (found === undefined && way !== undefined && isBulkUnsupported(outcomes[index])) {
          this.#unsupportedUntilMs[way] = this.#options.nowMs() + UNSUPPORTED_MS;
          failed.push(...each.keys);
        }
        for (const [key, value] of found ?? []) {
          values.set(key, value);
        }
      }
      addSingles(values, single, outcomes.slice(shared.length));
      missing = failed;
    }
    const [giver] = givers;
    onGiver?.(givers.size === 1 ? giver : undefined);
    return values;
  }

  /** Reads values one by one, to confirm what another way returned. Never rejects. */
  async readSingly(keys: readonly StateKey[], block: BlockId, onSpent: (units: number) => void): Promise<ReadValues> {
    const values = new Map<StateKey, string>();
    addSingles(values, keys, await this.#fetch(keys.map(asCall(block)), block, onSpent));
    return values;
  }

  /** Returns the calls that read the keys now: most by the best way that may be supported, nonces and a few others one by one. */
  #plan(keys: readonly StateKey[], { hash }: BlockId) {
    const way = (["call", "proof"] as const).find((each) => this.#unsupportedUntilMs[each] <= this.#options.nowMs());
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

  async #fetch(
    calls: readonly Call[],
    block: BlockId,
    onSpent: (units: number) => void,
    givers?: Set<string>,
  ): Promise<readonly unknown[]> {
    onSpent(this.#unitsOf(calls));
    let giver: string | undefined;
    try {
      const outcomes = await this.#options.fetch(calls, block, (node) => {
        giver = node;
      });
      if (giver !== undefined) {
        givers?.add(giver);
      }
      return outcomes;
    } catch (error) {
      // No node is available: the caller tries again later.
      return calls.map(() => new NodeError("unreachable", "", String(error)));
    }
  }

  #unitsOf(calls: readonly Call[]): number {
    return calls.reduce((sum, { method }) => sum + this.#options.unitsOf(method), 0);
  }
}

const asCall =
  ({ hash }: BlockId) =>
  (key: StateKey): Call =>
    singleCall(key, hash);

const addSingles = (values: Map<StateKey, string>, keys: readonly StateKey[], outcomes: readonly unknown[]): void => {
  for (const [index, key] of keys.entries()) {
    const value = parseSingle(key, outcomes[index]);
    if (value !== undefined) {
      values.set(key, value);
    }
  }
};
