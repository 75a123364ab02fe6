import { type CallScope, spendUnits } from "../core/context.ts";
import type { BlockId } from "../core/heads.ts";
import { isNodeFault, type NodeError, type NodeErrorKind } from "../core/node.ts";
import { larger } from "../ethereum/bigintOrder.ts";
import type { Hash } from "../ethereum/hex.ts";
import type { Call } from "../jsonrpc/call.ts";
import type { CounterSeries, HistogramSeries } from "../telemetry/summedSeries.ts";
import type { Metrics } from "../telemetry/telemetry.ts";
import type { PolledHead } from "./blockReads.ts";
import { type Capabilities, type DataResource, oldestStated } from "./nodeCapabilities.ts";
import type { NodeConfig, NodeLabels, TransportOptions } from "./nodeConfig.ts";

/** The record expires, because a node may be replaced by one with more data. */
const FORGET_AFTER_MS = 600_000;

/** A node keeps the data of this number of its newest blocks. */
interface LearnedHorizon {
  readonly blocks: bigint;
  readonly atMs: number;
}

/**
 * Learns a pruned node's prune horizon as a distance in blocks, for each kind of data: the horizon moves with the node's head. What
 * the node states of its data counts too.
 */
class PruneHorizon {
  stated: Capabilities | undefined;
  readonly #learned = new Map<DataResource, LearnedHorizon>();

  /** Records that the node does not have the data of this block. */
  recordPruned(resource: DataResource, number: bigint, head: bigint | undefined): void {
    const blocks = (head ?? number) - number;
    const known = this.#learnedOf(resource);
    if (blocks > 0n && (known === undefined || blocks < known)) {
      this.#learned.set(resource, { blocks, atMs: performance.now() });
    }
  }

  /** Returns the lowest block whose data of this kind the node may have. */
  oldestOf(resource: DataResource, head: bigint | undefined): bigint {
    const stated = this.stated?.[resource];
    const kept = this.#learnedOf(resource);
    const learned = kept === undefined || head === undefined || head < kept ? 0n : head - kept + 1n;
    return stated === undefined || head === undefined ? learned : larger(learned, oldestStated(stated, head));
  }

  #learnedOf(resource: DataResource): bigint | undefined {
    const learned = this.#learned.get(resource);
    return learned === undefined || performance.now() - learned.atMs > FORGET_AFTER_MS ? undefined : learned.blocks;
  }
}

/** The longest time that one machine of a node may be behind another. */
const ANNOUNCED_MS = 10_000;
const AVERAGE_WEIGHT = 0.1;
/** With blocks of 200 ms, these are those of the time that another origin may need for the same head. */
const RECENT_BLOCKS = 16;

/** A block that a node announced. */
export interface AnnouncedBlock extends BlockId {
  readonly parentHash?: Hash;
}

type CountedMetrics = Pick<
  Metrics,
  | "upstreamHead"
  | "upstreamRequests"
  | "upstreamCalls"
  | "upstreamUnits"
  | "upstreamRefused"
  | "upstreamSeconds"
  | "upstreamLastError"
>;

type CountedMethods = Pick<TransportOptions, "methodLabel" | "unitsOf" | "onCall"> & Pick<NodeConfig, "budget">;

/**
 * What is observed of one node, with its metrics: calls, requests and outcomes. For the selection of nodes it also has heads,
 * prune horizon, latency, share of faults and load.
 */
export class NodeHealth {
  readonly #labels: NodeLabels;
  readonly #metrics: CountedMetrics;
  readonly #methods: CountedMethods;
  /** Calls by metric label of their method. Each series is looked up once. */
  readonly #calls = new Map<string, CounterSeries>();
  readonly #outcomes = new Map<NodeErrorKind | "ok", CounterSeries>();
  readonly #units: CounterSeries;
  readonly #refused: CounterSeries;
  readonly #seconds: HistogramSeries;
  readonly #horizon = new PruneHorizon();
  #head: BlockId | undefined;
  #polled: PolledHead | undefined;
  /** The newest announced blocks and their parents, in ascending order. */
  #recent: readonly BlockId[] = [];
  #highestHead: { readonly number: bigint; readonly atMs: number } | undefined;
  #latencyMs = 0;
  #errorShare = 0;
  #inFlight = 0;

  constructor(labels: NodeLabels, metrics: CountedMetrics, methods: CountedMethods) {
    this.#labels = labels;
    this.#metrics = metrics;
    this.#methods = methods;
    this.#units = metrics.upstreamUnits.series(labels);
    this.#refused = metrics.upstreamRefused.series(labels);
    this.#seconds = metrics.upstreamSeconds.series(labels);
  }

  get head(): bigint | undefined {
    return this.#head?.number;
  }

  /** Hash of the block at `head`. */
  get headHash(): Hash | undefined {
    return this.#head?.hash;
  }

  /** The highest head that was reported within ANNOUNCED_MS: one of the node's machines has that block, even if `head` is lower. */
  get announced(): bigint | undefined {
    const highest = this.#highestHead;
    return highest && performance.now() - highest.atMs <= ANNOUNCED_MS ? highest.number : this.head;
  }

  /** What the node states of its data. Undefined if it states nothing. */
  get capabilities(): Capabilities | undefined {
    return this.#horizon.stated;
  }

  recordCapabilities(stated: Capabilities | undefined): void {
    this.#horizon.stated = stated;
  }

  /** Returns the lowest block whose data of this kind the node may have. */
  oldestOf(resource: DataResource): bigint {
    return this.#horizon.oldestOf(resource, this.head);
  }

  /** Moving average of the duration of good responses. */
  get latencyMs(): number {
    return this.#latencyMs;
  }

  /** Moving average of the share of faults, 0 to 1. */
  get errorShare(): number {
    return this.#errorShare;
  }

  /** Calls that wait or are in flight. */
  get inFlight(): number {
    return this.#inFlight;
  }

  /** Returns the hash of a recent block of the node's chain, if it announced the block or its child. */
  hashAt(number: bigint): Hash | undefined {
    return this.#recent.find((block) => block.number === number)?.hash;
  }

  /** Records the newest block that the node reported. */
  recordHead({ number, hash, parentHash }: AnnouncedBlock): void {
    const { announced } = this;
    if (announced === undefined || number >= announced) {
      this.#highestHead = { number, atMs: performance.now() };
    }
    this.#head = { number, hash };
    const parent = parentHash === undefined ? [] : [{ number: number - 1n, hash: parentHash }];
    const lowest = parent[0]?.number ?? number;
    const below = this.#recent.filter((block) => block.number < lowest);
    this.#recent = [...below, ...parent, this.#head].slice(-RECENT_BLOCKS);
    this.#metrics.upstreamHead.set(this.#labels, Number(number));
  }

  /** Records the answer to a poll that returned a new block. Undefined if it was pushed. */
  recordPolled(polled: PolledHead | undefined): void {
    this.#polled = polled;
  }

  /** Returns the answer to the newest poll if it is this block. The caller only reads it. */
  polledBody(hash: Hash): Uint8Array | undefined {
    return this.#polled?.head.block.hash === hash ? this.#polled.body : undefined;
  }

  /** Returns the answer to the newest poll if the call reads that block by its hash. Only once: bytes have one owner. */
  takePolled({ method, params: [hash, isFull] }: Call): Uint8Array | undefined {
    const polled = this.#polled;
    if (method !== "eth_getBlockByHash" || polled?.head.block.hash !== hash || polled?.isFull !== isFull) {
      return undefined;
    }
    this.#polled = undefined;
    return polled?.body;
  }

  recordPruned(resource: DataResource, number: bigint): void {
    this.#horizon.recordPruned(resource, number, this.head);
  }

  /** Records a call, which may have to wait, until `endCall`. */
  beginCall(): void {
    this.#inFlight += 1;
  }

  endCall(): void {
    this.#inFlight -= 1;
  }

  /** Counts a call that is sent. */
  countCall(method: string, scope: Pick<CallScope, "caller" | "progress">): void {
    const label = this.#methods.methodLabel?.(method) ?? "other";
    let calls = this.#calls.get(label);
    if (calls === undefined) {
      calls = this.#metrics.upstreamCalls.series({ ...this.#labels, method: label });
      this.#calls.set(label, calls);
    }
    calls.inc();
    const units = this.#methods.unitsOf?.(method) ?? 0;
    this.#units.inc(units);
    this.#methods.onCall?.(scope.caller, units);
    this.#methods.budget?.spend(units);
    spendUnits(scope, units);
  }

  countOutcome(outcome: NodeErrorKind | "ok", durationMs: number): void {
    let outcomes = this.#outcomes.get(outcome);
    if (outcomes === undefined) {
      outcomes = this.#metrics.upstreamRequests.series({ ...this.#labels, outcome });
      this.#outcomes.set(outcome, outcomes);
    }
    outcomes.inc();
    this.#seconds.observe(durationMs / 1000);
  }

  /** Records the time of an error of the node. Errors of requests, and of what the node lacks, have no effect. */
  recordError({ kind }: NodeError): void {
    if (isNodeFault(kind)) {
      this.#metrics.upstreamLastError.set({ ...this.#labels, outcome: kind }, Date.now() / 1000);
    }
  }

  /** Counts a call that was not sent, because too many calls wait. */
  countRefusal(): void {
    this.#refused.inc();
  }

  /** Records that another node responded first, this long after the request to this one. No effect on a node that is slower as a rule. */
  recordLatencyAbove(elapsedMs: number): void {
    if (elapsedMs > this.#latencyMs) {
      this.#recordLatency(elapsedMs);
    }
  }

  /** Updates the averages by an HTTP request. Durations of faults do not count: a timeout says nothing about the usual latency. */
  recordRequest(durationMs: number, isFault: boolean): void {
    this.#errorShare += AVERAGE_WEIGHT * ((isFault ? 1 : 0) - this.#errorShare);
    if (!isFault && durationMs > 0) {
      this.#recordLatency(durationMs);
    }
  }

  #recordLatency(durationMs: number): void {
    this.#latencyMs += (this.#latencyMs === 0 ? 1 : AVERAGE_WEIGHT) * (durationMs - this.#latencyMs);
  }
}
