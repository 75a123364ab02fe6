import type { BlockId } from "../core/heads.ts";
import type { RpcResponse } from "../core/rpcSource.ts";
import { BackOff } from "../nodes/backOff.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";
import type { FetchedValues } from "./fetch/stateFetcher.ts";
import { parseSingle } from "./fetch/stateRequests.ts";
import type { ComparedNode, OriginComparison, StateDifference } from "./originComparison.ts";
import { MAX_AUDIT_UNITS, RESTORED_FACTOR, type StateCost, type UnitPurpose } from "./stateCost.ts";
import type { StateDifferences } from "./stateDifferences.ts";
import type { StateKey } from "./stateKey.ts";
import type { ValueStore } from "./store/valueStore.ts";

/** The result of a comparison with one node. */
interface Compared {
  /** Values that the node returned. */
  readonly count: number;
  readonly difference: StateDifference | undefined;
}

/**
 * Reads known values from a node. Returns the first one that differs. Many are read in bulk. A node may read many values wrongly,
 * but one value correctly, so a difference is confirmed by a read of its own. Never rejects.
 */
export const compareValues = async (
  { name, reader }: ComparedNode,
  known: FetchedValues["values"],
  block: BlockId,
  onSpent: (units: number) => void,
): Promise<Compared> => {
  const keys = [...known.keys()];
  const isOne = keys.length === 1;
  const read = await (isOne ? reader.readSingly(keys, block, onSpent) : reader.read(keys, block, onSpent));
  const actual = read.values;
  const suspect = [...actual].find(([key, value]) => value !== known.get(key))?.[0];
  if (suspect === undefined) {
    return { count: actual.size, difference: undefined };
  }
  const confirmed = (isOne ? read : await reader.readSingly([suspect], block, onSpent)).values.get(suspect);
  const value = known.get(suspect);
  const isSame = confirmed === undefined || value === undefined || confirmed === value;
  return {
    count: actual.size,
    difference: isSame ? undefined : { key: suspect, block, known: value, actual: confirmed, node: name },
  };
};

export interface StateChecksOptions {
  readonly chain: string;
  readonly values: Pick<ValueStore, "get" | "hasProof" | "head" | "sourceOf" | "used">;
  readonly cost: Pick<StateCost, "budget" | "spend" | "takeSample" | "comparisonFactor" | "onCompared">;
  readonly comparison: Pick<OriginComparison, "nextNode" | "nodeBeside">;
  readonly differences: Pick<StateDifferences, "handle">;
  readonly telemetry: Pick<Telemetry, "log" | "metrics">;
  readonly random?: () => number;
}

/** The response to a read that no node was asked for. */
interface LocalRead extends Pick<RpcResponse, "proof"> {
  readonly body: Uint8Array;
}

const AUDIT_INTERVAL_MS = 30_000;
/** A node that returns no value is audited ever more seldom. */
const BACKOFF = { failures: 1, openMs: AUDIT_INTERVAL_MS, maxOpenMs: 600_000 };
/** Known values that one audit compares. Half of them are the most used ones. */
const MAX_VALUES = 2_000;
/** A nonce costs as much as 400 other values. */
const MAX_NONCES = 5;

const NONE: FetchedValues["values"] = new Map();

const decoder = new TextDecoder();

/** Compares the known state of one chain with its nodes: many values from time to time, and a share of the local results. */
export class StateChecks {
  readonly #options: StateChecksOptions;
  readonly #random: () => number;
  readonly #timer: NodeJS.Timeout;
  readonly #breakers = new Map<string, BackOff>();
  #isAuditing = false;
  #ticks = 0;

  constructor(options: StateChecksOptions) {
    this.#options = options;
    this.#random = options.random ?? Math.random;
    this.#timer = setInterval(() => this.#tick(), AUDIT_INTERVAL_MS / RESTORED_FACTOR).unref();
  }

  /**
   * Audits known values once, but no proven ones, unless nothing is known, the last audit is still running, or too little was saved
   * since. The origins take turns.
   */
  async audit(): Promise<void> {
    const { values, comparison, cost } = this.#options;
    const block = values.head;
    const node = block === undefined || this.#isAuditing ? undefined : comparison.nextNode();
    if (block === undefined || node === undefined) {
      return;
    }
    const breaker = this.#breakers.get(node.name) ?? new BackOff(BACKOFF);
    this.#breakers.set(node.name, breaker);
    const known = breaker.available ? this.#choose(block, node.reader) : NONE;
    if (known.size === 0 || node.reader.unitsFor([...known.keys()], block) > cost.budget.forAudit) {
      return;
    }
    this.#isAuditing = true;
    breaker.begin();
    try {
      const count = await this.#compare("audit", node, known, block);
      if (count > 0) {
        breaker.succeeded();
      } else {
        breaker.failed();
      }
    } catch (error) {
      breaker.failed();
      throw error;
    } finally {
      this.#isAuditing = false;
    }
  }

  /** Called with each read that no node was asked for. A share of them is compared at the block of the response. */
  onLocalRead(key: StateKey, block: BlockId, { body, proof }: LocalRead): void {
    if (this.#options.cost.takeSample(proof === "proven")) {
      this.#sample(key, block, body).catch((err) => this.#report(err));
    }
  }

  close(): void {
    clearInterval(this.#timer);
  }

  #tick(): void {
    this.#ticks++;
    if (this.#ticks * this.#options.cost.comparisonFactor >= RESTORED_FACTOR) {
      this.#ticks = 0;
      this.audit().catch((err) => this.#report(err));
    }
  }

  /** Compares a value with a node of another origin than its own. */
  async #sample(key: StateKey, block: BlockId, body: Uint8Array): Promise<void> {
    const { values, comparison } = this.#options;
    const node = comparison.nodeBeside(values.sourceOf(key, block)?.node);
    if (node !== undefined) {
      const known = parseSingle(key, JSON.parse(decoder.decode(body))) ?? "";
      await this.#compare("sample", node, new Map([[key, known]]), block);
    }
  }

  /** Returns the number of values that were compared. */
  async #compare(
    kind: UnitPurpose & ("audit" | "sample"),
    node: ComparedNode,
    known: FetchedValues["values"],
    block: BlockId,
  ): Promise<number> {
    const { chain, cost, differences, telemetry } = this.#options;
    const { count, difference } = await compareValues(node, known, block, (units) => cost.spend(kind, units));
    cost.onCompared(count);
    if (count > 0) {
      telemetry.metrics.stateCompared.inc({ chain, kind }, count);
    }
    if (difference !== undefined) {
      differences.handle(difference, kind);
    }
    return count;
  }

  #report(err: unknown): void {
    const { chain, telemetry } = this.#options;
    telemetry.log.error({ err, chain }, "known state was not compared");
  }

  /** Returns known values whose audit costs no more than the budget can allow. */
  #choose(block: BlockId, reader: ComparedNode["reader"]): FetchedValues["values"] {
    let limit = MAX_VALUES;
    let known = this.#knownValues(block, limit);
    while (limit > 1 && reader.unitsFor([...known.keys()], block) > MAX_AUDIT_UNITS) {
      limit = Math.floor(limit / 2);
      known = this.#knownValues(block, limit);
    }
    return known;
  }

  #knownValues(block: BlockId, limit: number): FetchedValues["values"] {
    const { values } = this.#options;
    const half = Math.ceil(limit / 2);
    const known = new Map<StateKey, string>();
    let nonces = 0;
    for (const key of new Set([...values.used.mostUsed(half), ...values.used.sample(half, this.#random)])) {
      const value = values.get(key, block);
      const isLeftOut = (key.field === "nonce" && nonces === MAX_NONCES) || values.hasProof(key, block);
      if (value === undefined || isLeftOut) {
        continue;
      }
      nonces += key.field === "nonce" ? 1 : 0;
      known.set(key, value);
    }
    return known;
  }
}
