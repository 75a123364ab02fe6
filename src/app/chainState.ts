import { createUnitsOf } from "../access/providerUnits.ts";
import { Disagreements } from "../cache/agreedState.ts";
import { RedisSnapshots } from "../cache/redisSnapshots.ts";
import { UnverifiedError } from "../core/node.ts";
import type { Address } from "../ethereum/hex.ts";
import { createBatchFetch } from "../nodes/fetchStateBatch.ts";
import type { CallCache } from "../state/calls/callCache.ts";
import { ExecutionReads } from "../state/executionReads.ts";
import { createAgreedFetch } from "../state/fetch/agreedFetch.ts";
import { StateFetcher } from "../state/fetch/stateFetcher.ts";
import { comparedNodes, OriginComparison } from "../state/originComparison.ts";
import { createSameRules } from "../state/sameRules.ts";
import { SharedEvidence } from "../state/sharedEvidence.ts";
import { SourcedValues } from "../state/sourcedValues.ts";
import { SourceTrust } from "../state/sourceTrust.ts";
import { StateChecks } from "../state/stateChecks.ts";
import { StateCost } from "../state/stateCost.ts";
import { StateDifferences } from "../state/stateDifferences.ts";
import { maxMissingBlocks, StateFollower } from "../state/stateFollower.ts";
import { StateLearner } from "../state/stateLearner.ts";
import { StateReads } from "../state/stateReads.ts";
import { ENTRY_BYTES } from "../state/store/entryPages.ts";
import { ValueStore } from "../state/store/valueStore.ts";
import type { WriteSetSource, WriteSetSourceKind } from "../state/writeSet.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";
import { ChainSnapshot, type ChainSnapshotOptions, type RestorableState } from "./chainSnapshot.ts";
import type { ChainViews } from "./chainViews.ts";
import { createCallCache } from "./createCallCache.ts";
import type { ReadPipeline } from "./createReadPipeline.ts";
import { createWriteSetSources, type WriteSetSourcesOptions } from "./createWriteSetSources.ts";
import { directNodeCall } from "./directNodeCall.ts";
import { type ForwardedReasons, isDevelopmentNode } from "./forwardedReasons.ts";
import { mayGoOn, removedNodes, untilLinked } from "./stateSuccession.ts";

/** The share of `state.cacheBytes` for answers to calls. */
const ANSWER_SHARE = 0.125;
/** Executions may cache values of `state.cacheBytes` times this, and as many bytes of codes. */
const EXECUTION_SHARE = 1 / 4;
/** Executions need their values even with `state.cacheBytes: 0`: this many requests with all the values that one may read. */
const MIN_REQUESTS = 4;

const nowMs = (): number => performance.now();

export interface ChainStateOptions extends Omit<WriteSetSourcesOptions, "cost" | "trust"> {
  readonly views: Pick<ChainViews, "ready" | "view" | "forks" | "systemContracts" | "execution">;
  readonly forwarded: ForwardedReasons;
  readonly pipeline: Pick<ReadPipeline, "ownReads" | "runScript" | "sharedValues" | "forget">;
  /** Undefined without a data folder. */
  readonly storage: ChainSnapshotOptions["storage"] | undefined;
  /** Aborts when the chain is closed. */
  readonly signal: AbortSignal;
  readonly telemetry: Telemetry;
}

interface Costs {
  readonly cost: StateCost;
  readonly trust: SourceTrust;
}

/** The values of one chain, with their givers and costs. The chain that replaces it can go on with them. */
interface Known extends Costs {
  readonly values: ValueStore;
  readonly sourced: SourcedValues;
}

/** The known state of one chain. It begins when the chain is known. */
export class ChainState {
  readonly #options: ChainStateOptions;
  /** Whether to follow state. */
  readonly #isWanted: Promise<boolean>;
  #store: ValueStore;
  #known: Known | undefined;
  #follower: StateFollower | undefined;
  #reads: StateReads | undefined;
  #executionReads: ExecutionReads | undefined;
  #checks: StateChecks | undefined;
  #learner: StateLearner | undefined;
  #differences: StateDifferences | undefined;
  #evidence: SharedEvidence | undefined;
  #callCache: ReturnType<typeof createCallCache> | undefined;
  readonly #onDropped = new Set<() => void>();
  #sources: readonly WriteSetSource[] = [];
  /** The sources that no node supports. */
  readonly #unsupported = new Set<WriteSetSourceKind>();
  /** That of the data folder first, then that of Redis. */
  readonly #snapshots: readonly ChainSnapshot[];
  #isClosed = false;

  constructor(options: ChainStateOptions) {
    const { storage } = options;
    this.#options = options;
    const { runScript } = options.pipeline;
    this.#snapshots = [
      ...(storage ? [new ChainSnapshot({ ...options, storage, isShared: false })] : []),
      ...(runScript ? [new ChainSnapshot({ ...options, storage: new RedisSnapshots(runScript), isShared: true })] : []),
    ];
    this.#store = this.#createStore();
    this.#isWanted = options.views.ready
      .then(() => this.#decideWanted())
      .catch((err: unknown) => {
        this.#logUnfollowed(err);
        return false;
      });
  }

  /** The values of the state, those of blocks that are not followed too. */
  get store(): ValueStore {
    return this.#store;
  }

  /** Undefined if state is not followed. */
  get reads(): StateReads | undefined {
    return this.#reads;
  }

  /** Undefined if state is not followed. */
  get executionReads(): ExecutionReads | undefined {
    return this.#executionReads;
  }

  /** Undefined if calls are not answered from earlier answers. */
  get callCache(): CallCache | undefined {
    return this.#callCache?.callCache;
  }

  /** Calls the listener when known values or answers are dropped. Returns the function that ends this. */
  subscribeDropped(listener: () => void): () => void {
    this.#onDropped.add(listener);
    return () => this.#onDropped.delete(listener);
  }

  /**
   * Begins to follow, once the chain is known. Goes on with the values of the chain that this one replaces, if both have the same
   * rules and options. Never rejects.
   */
  async begin(predecessor: ChainState | undefined): Promise<void> {
    try {
      if ((await this.#isWanted) && !this.#isClosed) {
        await this.#begin(predecessor);
      }
    } catch (error) {
      this.#logUnfollowed(error);
    }
  }

  /** Writes what is known to the data folder. Never rejects. */
  async save(): Promise<void> {
    await Promise.all(this.#snapshots.map((snapshot) => snapshot.save()));
  }

  close(): void {
    this.#isClosed = true;
    for (const snapshot of this.#snapshots) {
      snapshot.end();
    }
    this.#follower?.close();
    this.#closeLearning();
  }

  #closeLearning(): void {
    this.#evidence?.close();
    this.#checks?.close();
    this.#callCache?.close();
  }

  #logUnfollowed(err: unknown): void {
    const { config, telemetry } = this.#options;
    telemetry.log.debug({ err, chain: config.name }, "state is not followed");
  }

  async #decideWanted(): Promise<boolean> {
    const { follow, cacheBytes } = this.#options.config.state;
    return follow !== false && cacheBytes > 0 && !(follow === "auto" && (await this.#isDevelopmentNode()));
  }

  async #begin(predecessor: ChainState | undefined): Promise<void> {
    const { config, telemetry } = this.#options;
    const known = predecessor && (await predecessor.#release(this));
    const costs = known ?? this.#createCosts();
    const sources = createWriteSetSources({ ...this.#options, ...costs });
    if (sources.length === 0) {
      this.#options.forwarded.set("noSource", true);
    }
    if (sources.length === 0 || this.#isClosed) {
      return;
    }
    telemetry.log.debug({ chain: config.name, sources: sources.map(({ kind }) => kind) }, "state is followed");
    await this.#shareEvidence(costs.trust);
    if (this.#isClosed) {
      this.#closeLearning();
      return;
    }
    this.#follow(sources, known ?? (await this.#restore(this.#createKnown(costs), sources)));
  }

  /** Exchanges the evidence on traces with other replicas, from now on. */
  async #shareEvidence(trust: SourceTrust): Promise<void> {
    const { pipeline, upstreams } = this.#options;
    const { sharedValues: values } = pipeline;
    if (values === undefined) {
      return;
    }
    this.#evidence = new SharedEvidence({
      ...{ values, trust, nodes: upstreams.nodes },
      onSuspended: (node, cause) => {
        if (cause === "value") {
          this.#recordWrongValue(node);
        }
        this.#follower?.forgetNode(node);
        for (const snapshot of this.#snapshots) {
          snapshot.replace();
        }
        this.#publishDropped();
      },
    });
    await this.#evidence.exchange();
  }

  #recordWrongValue(name: string): void {
    const node = this.#options.upstreams.nodes.find((each) => each.name === name);
    node?.recordWrongAnswer(new UnverifiedError(name, "state", true));
  }

  get #snapshotOfAll() {
    const snapshots = this.#snapshots;
    return {
      get isWatched(): boolean {
        return snapshots.some(({ isWatched }) => isWatched);
      },
      discard: () => {
        for (const snapshot of snapshots) {
          snapshot.discard();
        }
      },
      replace: () => {
        for (const snapshot of snapshots) {
          snapshot.replace();
        }
      },
    };
  }

  /** Restores what was known before a restart. */
  async #restore(known: Known, sources: readonly WriteSetSource[]): Promise<Known> {
    for (const snapshot of this.#snapshots) {
      await snapshot.restore({ ...known, isWorthIt: this.#worthOf(sources) });
      if (known.values.head !== undefined) {
        break;
      }
    }
    return known;
  }

  #worthOf([source]: readonly WriteSetSource[]): RestorableState["isWorthIt"] {
    const { heads } = this.#options.upstreams;
    const unitsPerBlock = source?.unitsPerBlock ?? 0;
    return (missing, savedUnits) =>
      missing <= maxMissingBlocks(heads.blockTimeMs) && missing * unitsPerBlock <= savedUnits;
  }

  /** Gives what is known to the chain that replaces this one. Undefined if it does not hold there. */
  async #release(successor: ChainState): Promise<Known | undefined> {
    const follower = this.#follower;
    const known = this.#known;
    if (
      follower === undefined ||
      known === undefined ||
      this.#isClosed ||
      !mayGoOn(this.#options, successor.#options)
    ) {
      return undefined;
    }
    const { trust, values, sourced } = known;
    for (const snapshot of this.#snapshots) {
      snapshot.end();
    }
    for (const [index, snapshot] of this.#snapshots.entries()) {
      successor.#snapshots[index]?.succeed(snapshot);
    }
    await untilLinked(values.head, successor.#options);
    this.#closeLearning();
    await follower.release();
    const removed = removedNodes(this.#options.config, successor.#options.config);
    for (const node of removed) {
      trust.forget(node);
      values.forgetNode(node);
    }
    return removed.some((node) => sourced.isCarriedBy(node)) ? undefined : known;
  }

  async #isDevelopmentNode(): Promise<boolean> {
    const { upstreams, forwarded } = this.#options;
    const heads = upstreams.heads.current();
    if (heads === undefined) {
      return false;
    }
    // Not the view of clients: its use starts probes of the nodes' pending blocks.
    const callNode = directNodeCall(upstreams, () => ({ heads }));
    const version = await callNode("web3_clientVersion", []).catch(() => undefined);
    const isDevelopment = isDevelopmentNode(version);
    forwarded.set("developmentNode", isDevelopment);
    return isDevelopment;
  }

  #createCosts(): Costs {
    const { config, upstreams, telemetry } = this.#options;
    const { units, probation, learning } = config.state;
    const { metrics } = telemetry;
    const cost = new StateCost({ chain: config.name, metrics, unitsOf: createUnitsOf(units), learning });
    const nodes = upstreams.nodes.map(({ name }) => name);
    return { cost, trust: new SourceTrust({ nowMs, cost, probation, nodes }) };
  }

  /** The share of the room for answers to calls. */
  get #answerBytes(): number {
    const { follow, cacheBytes } = this.#options.config.state;
    return follow === "auto" ? Math.floor(cacheBytes * ANSWER_SHARE) : 0;
  }

  #createStore(): ValueStore {
    const { state, simulate } = this.#options.config;
    const followed = state.follow === false ? 0 : state.cacheBytes - this.#answerBytes;
    const minimum = MIN_REQUESTS * simulate.maxStateReads * ENTRY_BYTES;
    return new ValueStore(followed, Math.max(minimum, Math.floor(state.cacheBytes * EXECUTION_SHARE)));
  }

  #createKnown(costs: Costs): Known {
    return { ...costs, values: this.#store, sourced: new SourcedValues(this.#store) };
  }

  #createFollower({ cost, values, sourced }: Known): StateFollower {
    const { config, upstreams, views, telemetry } = this.#options;
    const { heads } = upstreams;
    return new StateFollower({
      heads,
      sources: this.#sources,
      cost,
      values,
      sourced,
      ...{ chain: config.name, telemetry },
      hasSameRules: createSameRules({ forks: () => views.forks, heads: () => heads.current() }),
      onRead: (source, outcome) => this.#noteSource(source, outcome),
      onDropped: () => {
        for (const snapshot of this.#snapshots) {
          snapshot.endWatch();
        }
        this.#learner?.onDropped();
        this.#publishDropped();
      },
      onDifference: (difference) => this.#differences?.handle(difference, "read"),
    });
  }

  #follow(sources: readonly WriteSetSource[], known: Known): void {
    const { config, upstreams, views, telemetry } = this.#options;
    const chain = config.name;
    const { cost, trust, values, sourced } = known;
    this.#known = known;
    this.#store = values;
    this.#sources = sources.map((source) => trust.guard(source));
    const answerBytes = this.#answerBytes;
    const { heads } = upstreams;
    const follower = this.#createFollower(known);
    this.#follower = follower;
    for (const snapshot of this.#snapshots) {
      snapshot.begin({ ...known, isWorthIt: this.#worthOf(sources), follower });
    }
    const { timeoutMs } = config.upstream;
    const fetch = createAgreedFetch({
      ...{ nodes: upstreams.nodes, agree: config.state.agree, timeoutMs, isStrict: true },
      fetchFrom: (nodes, forMs) => createBatchFetch({ nodes, heads }, forMs),
      disagreements: new Disagreements(chain, telemetry),
    });
    const comparison = new OriginComparison({
      nodes: comparedNodes(upstreams, timeoutMs, cost.unitsOf),
      onSpent: (units) => cost.spend("audit", units),
    });
    const differences = new StateDifferences({
      ...{ chain, comparison, trust, values, sourced, follower, telemetry, snapshot: this.#snapshotOfAll },
      recordWrongValue: (name) => this.#recordWrongValue(name),
      onForgotten: () => this.#publishDropped(),
    });
    this.#differences = differences;
    const parts = { values, follower, cost, fetch, comparison, differences };
    const checked = { chain, values, cost, telemetry };
    this.#checks = new StateChecks({ ...checked, comparison, differences });
    const reader = new StateFetcher(fetch, cost.unitsOf);
    this.#learner = new StateLearner({ ...checked, follower, reader, nowMs });
    const never = new Set(config.state.never.map((address): Address => `0x${address.slice(2).toLowerCase()}`));
    const execution = config.simulate.enabled ? views.execution : undefined;
    if (execution !== undefined && answerBytes > 0) {
      const ofCallCache = { ...this.#options, ...parts, execution, never, maxBytes: answerBytes };
      this.#callCache = createCallCache({ ...ofCallCache, onDropped: () => this.#publishDropped() });
    }
    const { waitMs } = config.state;
    const shared = { ...checked, follower, never, waitMs, blockTimeMs: () => heads.blockTimeMs };
    this.#reads = new StateReads({ ...shared, checks: this.#checks });
    this.#executionReads = new ExecutionReads({ ...shared, heads });
  }

  /** No source is left if no node supports any. A node that is down and a source that rests say the same for a time. */
  #noteSource(source: WriteSetSourceKind, outcome: string): void {
    const { forwarded, upstreams } = this.#options;
    if (outcome !== "unsupported") {
      this.#unsupported.clear();
      forwarded.set("noSource", false);
      return;
    }
    this.#unsupported.add(source);
    const isForATime =
      !upstreams.nodes.some(({ available }) => available) || this.#sources.some((each) => each.isSuspended);
    if (!isForATime && this.#unsupported.size === this.#sources.length && !forwarded.has("rulesUnknown")) {
      forwarded.set("noSource", true);
    }
  }

  #publishDropped(): void {
    for (const listener of this.#onDropped) {
      listener();
    }
  }
}
