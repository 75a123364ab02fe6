import { isDeepStrictEqual } from "node:util";
import { UnverifiedError } from "../core/node.ts";
import { directNodeCall } from "../nodes/directNodeCall.ts";
import { isDevelopmentNode } from "../telemetry/forwardedReasons.ts";
import type { DropReason } from "../telemetry/stateMetrics.ts";
import type { Followed, KnownState } from "./blockState.ts";
import type { CallCache } from "./calls/callCache.ts";
import type { StoredCall } from "./calls/storedCall.ts";
import { StateCost } from "./cost.ts";
import { type RestorableState, StateRows } from "./rows/stateRows.ts";
import { runSliced } from "./runSliced.ts";
import { createSameRules } from "./sameRules.ts";
import { createWriteSetSources } from "./sources/createWriteSetSources.ts";
import { SourceGuard } from "./sources/sourceGuard.ts";
import { StateFollower } from "./stateFollower.ts";
import type { StateChain, StateParts } from "./stateParts.ts";
import { createStateReaders, type FollowedState, type StateReaders } from "./stateReaders.ts";
import type { StateReads } from "./stateReads.ts";
import { mayGoOn, rowsOwner, untilLinked } from "./stateSuccession.ts";
import { ENTRY_BYTES } from "./store/entryPages.ts";
import { ValueStore } from "./store/valueStore.ts";
import type { WriteSetSource, WriteSetSourceKind } from "./writeSet.ts";
import { resultWithin } from "./writeSetWaits.ts";

/** The share of `state.cacheBytes` for answers to calls. */
const ANSWER_SHARE = 0.125;
/** Executions may cache values of `state.cacheBytes` times this, and as many bytes of codes. */
const EXECUTION_SHARE = 1 / 4;
/** Executions need their values even with `state.cacheBytes: 0`: this many requests with all the values that one may read. */
const MIN_REQUESTS = 4;

/** Requests that come before the newest write set is applied, and before their answers are computed again, may go to nodes. */
const CATCH_UP_MS = 5_000;

/** After other drops, stored rows and the values of the feed's execution are right for their block. */
const MAY_BE_WRONG: ReadonlySet<DropReason> = new Set(["nodeChanged", "difference", "fault"]);

const nowMs = (): number => performance.now();

const optionsOf = (parts: StateParts, served: StateChain) => {
  const { writeSetThread: thread, storage, telemetry } = parts.shared;
  return { ...parts, served, thread, storage, telemetry, forwarded: served.forwarded };
};

type Costs = Pick<FollowedState, "cost" | "guard">;

/** The known state of one chain. It begins when the chain is known. */
export class ChainState implements KnownState {
  readonly #options: ReturnType<typeof optionsOf>;
  /** The state of the chain that this one replaces, until it begins. */
  #before: ChainState | undefined;
  /** Whether to follow state. */
  readonly #isWanted: Promise<boolean>;
  #store: ValueStore;
  #known: FollowedState | undefined;
  #follower: StateFollower | undefined;
  #readers: StateReaders | undefined;
  #sources: readonly WriteSetSource[] = [];
  /** The sources that no node supports. */
  readonly #unsupported = new Set<WriteSetSourceKind>();
  readonly #rows: StateRows | undefined;
  /** The calls of before, once they are added. */
  #moving: Promise<readonly StoredCall[]> | undefined;
  #isClosed = false;

  /** It goes on with the values and answers of the chain that this one replaces, if both have the same rules and options. */
  constructor(parts: StateParts, chain: StateChain, before: ChainState | undefined) {
    const options = optionsOf(parts, chain);
    this.#options = options;
    this.#before = before;
    const { storage } = options;
    const { upstreams, signal, telemetry } = options;
    this.#rows =
      storage &&
      new StateRows({
        ...{ chain: options.config.name, storage, heads: upstreams.heads, signal, telemetry },
        owner: () => rowsOwner(options),
        untilLinked: (block) => untilLinked(block, options),
      });
    this.#store = this.#createStore();
    this.#isWanted = options.served.ready
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

  /** Whether there may be values to restore when it begins. */
  get mayRestore(): boolean {
    return this.#rows !== undefined;
  }

  /** Undefined if state is not followed. */
  get reads(): StateReads | undefined {
    return this.#readers?.reads;
  }

  /** Undefined if state is not followed. */
  get followed(): Followed | undefined {
    return this.#readers?.followed;
  }

  /** Drops all values, because a node's state changed without a block. */
  forget(): void {
    if (this.#follower === undefined) {
      this.#store.clear();
      this.#options.served.pending.forget();
    } else {
      this.#follower.forget();
    }
  }

  /** Undefined if calls are not answered from earlier answers. */
  get callCache(): CallCache | undefined {
    return this.#readers?.calls?.callCache;
  }

  /** Begins to follow, once the chain is known. Resolves when reads at the head can be answered. Never rejects. */
  async begin(): Promise<void> {
    const predecessor = this.#before;
    this.#before = undefined;
    try {
      if ((await this.#isWanted) && !this.#isClosed) {
        await this.#begin(predecessor);
        const endMs = nowMs() + CATCH_UP_MS;
        await this.#untilApplied();
        if (predecessor === undefined) {
          await this.#refreshAnswers(endMs);
        }
      }
    } catch (error) {
      this.#logUnfollowed(error);
    }
  }

  /** Waits until the blocks since a restored one are applied, and restored values passed their check, but not long. */
  async #untilApplied(): Promise<void> {
    const latest = this.#options.upstreams.heads.current()?.latest;
    const settled = latest && this.#follower?.untilApplied(latest);
    const checked = Promise.resolve(settled).then(() =>
      this.#store.isChecked ? undefined : this.#readers?.audit.check(),
    );
    await resultWithin(checked, CATCH_UP_MS);
  }

  /** Executes the calls of before the restart, so that requests find their answers. */
  async #refreshAnswers(endMs: number): Promise<void> {
    const calls = await this.#moving;
    const block = this.#options.upstreams.heads.current()?.latest;
    if (calls !== undefined && block !== undefined) {
      const ended = calls.map(({ key, method }) => ({ key, method, block }));
      await this.callCache?.refresh(ended, () => this.#isClosed || nowMs() > endMs);
    }
  }

  /** Writes what is known to the data folder. Never rejects. */
  async save(): Promise<void> {
    await this.#rows?.save();
  }

  close(): void {
    this.#isClosed = true;
    this.#rows?.end();
    this.#follower?.close();
    this.#readers?.close();
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
    const found = known ?? (await this.#restore(costs, sources));
    if (!this.#isClosed) {
      this.#follow(sources, found);
    }
  }

  #recordWrongValue(name: string): void {
    const node = this.#options.upstreams.nodes.find((each) => each.name === name);
    node?.recordWrongAnswer(new UnverifiedError(name, "state", true));
  }

  /** Restores what was known before a restart. */
  async #restore(costs: Costs, sources: readonly WriteSetSource[]): Promise<FollowedState> {
    const known = { ...costs, values: this.#store, calls: [] };
    await this.#rows?.restore(this.#restorable(known, sources));
    return known;
  }

  #restorable({ values, cost, calls }: FollowedState, [source]: readonly WriteSetSource[]): RestorableState {
    const addCalls = (added: readonly StoredCall[]): void => {
      calls.push(...added);
      this.#restoreCalls(calls);
    };
    return { values, cost, unitsPerBlock: source?.unitsPerBlock ?? 0, addCalls };
  }

  /** Adds calls of an earlier process or chain. Before there is a place for them, they wait. */
  #restoreCalls(calls: StoredCall[]): void {
    const target = this.#readers?.calls;
    if (target !== undefined && calls.length > 0) {
      const added = calls.splice(0);
      this.#moving = target.restore(added).then(() => added);
    }
  }

  /** Gives what is known to the chain that replaces this one. Undefined if it does not hold there. */
  async #release(successor: ChainState): Promise<FollowedState | undefined> {
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
    const { values, calls } = known;
    this.#rows?.end();
    if (this.#rows) {
      successor.#rows?.continueFrom(this.#rows);
    }
    await untilLinked(values.head, successor.#options);
    this.#readers?.close();
    calls.length = 0;
    if (isDeepStrictEqual(this.#options.config.simulate, successor.#options.config.simulate)) {
      await this.#holdCalls(calls);
    }
    await follower.release();
    return known;
  }

  /** Keeps the calls for the next chain. */
  async #holdCalls(calls: StoredCall[]): Promise<void> {
    const listed = this.#readers?.calls?.calls();
    const take = function* (): Generator<void, void> {
      for (let next = listed?.next(); next !== undefined && next.done !== true; next = listed?.next()) {
        calls.push(...(next.value === undefined ? [] : [next.value]));
        yield;
      }
    };
    await runSliced(take());
  }

  async #isDevelopmentNode(): Promise<boolean> {
    const { upstreams, forwarded } = this.#options;
    const heads = upstreams.heads.current();
    if (heads === undefined) {
      return false;
    }
    // Not the view of clients: its use starts probes of the nodes' pending blocks.
    const callNode = directNodeCall(upstreams.background, () => ({ heads }));
    const version = await callNode("web3_clientVersion", []).catch(() => undefined);
    const isDevelopment = isDevelopmentNode(version);
    forwarded.set("developmentNode", isDevelopment);
    return isDevelopment;
  }

  #createCosts(): Costs {
    const { config, unitsOf, telemetry } = this.#options;
    const { unitsPerMinute } = config.state;
    const { metrics } = telemetry;
    const { used } = this.#store;
    const cost = new StateCost({ chain: config.name, metrics, unitsOf, unitsPerMinute, used });
    return { cost, guard: new SourceGuard({ nowMs, cost }) };
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

  #createFollower({ cost, guard, values }: FollowedState): StateFollower {
    const { config, upstreams, served, telemetry } = this.#options;
    const { heads } = upstreams;
    return new StateFollower({
      heads,
      sources: this.#sources,
      cost,
      values,
      guard,
      ...{ chain: config.name, telemetry },
      hasSameRules: createSameRules({ forks: () => served.forks, heads: () => heads.current() }),
      onRead: (source, outcome) => this.#noteSource(source, outcome),
      onApplied: (writeSet) => this.#readers?.audit.onApplied(writeSet),
      onDropped: (reason) => {
        if (MAY_BE_WRONG.has(reason)) {
          this.#rows?.drop();
          served.pending.forget();
        }
        this.#readers?.learner.onDropped();
      },
      onDifference: (difference) => this.#readers?.audit.onRead(difference),
    });
  }

  #follow(sources: readonly WriteSetSource[], known: FollowedState): void {
    this.#known = known;
    this.#store = known.values;
    known.guard.nodes = this.#options.upstreams.nodes.map(({ name }) => name);
    this.#sources = sources.map((source) => known.guard.guard(source));
    const follower = this.#createFollower(known);
    this.#follower = follower;
    const readers = createStateReaders({
      ...{ ...this.#options, ...known, follower, answerBytes: this.#answerBytes },
      recordWrongValue: (name) => this.#recordWrongValue(name),
      // Nothing may execute their calls after a restart.
      onAnswersDropped: () => this.#rows?.drop(),
    });
    this.#readers = readers;
    this.#restoreCalls(known.calls);
    this.#rows?.begin({
      ...this.#restorable(known, sources),
      follower,
      calls: () => readers.calls?.calls() ?? [].values(),
    });
  }

  /** No source is left if no node supports any. A node that is down and a suspended source say the same for a time. */
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
}
