import { isDeepStrictEqual } from "node:util";
import { serialize } from "node:v8";
import type { BlockId, Heads } from "../core/heads.ts";
import type { RequestContext, RpcResponse } from "../core/rpcSource.ts";
import type { StateSource } from "../core/stateReader.ts";
import type { PendingChange, PendingView, View } from "../core/view.ts";
import type { Address, Hash } from "../ethereum/hex.ts";
import type { PrefetchHint } from "../evm/reads/prefetch.ts";
import type { HeadTracker } from "../heads/headTracker.ts";
import type { Awaitable } from "../jsonrpc/awaitable.ts";
import { unavailable } from "../jsonrpc/rpcError.ts";
import type { UpstreamNode } from "../nodes/upstreamNode.ts";
import { pendingState } from "../pending/pendingState.ts";
import type { Simulator } from "../simulation/simulator.ts";
import type { FilterStore } from "../subscriptions/filterStore.ts";
import type {
  ExpectedTransactions,
  FilterCall,
  NodeFacts,
  PlainChange,
  RemoteAnswerCall,
  RemoteRun,
  RemoteState,
  RemoteStateRead,
  StateOutcome,
  ViewUpdate,
} from "./chainProtocol.ts";
import { diffHeads } from "./headsUpdate.ts";
import { HostedState, type KnownState } from "./hostedState.ts";
import { PendingEncoder } from "./pendingUpdate.ts";
import type { RemoteCall } from "./processChannel.ts";
import { type ViewMember, ViewRounds, type ViewRoundsOptions } from "./viewRounds.ts";

/** Executes calls of a chain. */
export interface HostedExecution {
  readonly simulator: Simulator;
  stateAt(block: BlockId, hint?: PrefetchHint, charge?: RequestContext["charge"]): StateSource;
}

/** A chain that the main process follows. */
export interface HostedChain {
  readonly heads: HeadTracker;
  readonly nodes: readonly UpstreamNode[];
  readonly genesis: { readonly chainId: bigint; readonly hash: Hash };
  readonly ready: Promise<void>;
  readonly views: {
    view(): View;
    readonly execution: HostedExecution | undefined;
    subscribe(listener: (change: PendingChange) => void): () => void;
    recordSubmitted(raw: string): Hash | undefined;
    advanceNonce(sender: Address, nonce: bigint): Promise<bigint>;
  };
  /** Filters of clients of all serving processes. */
  readonly filters: FilterStore;
  readonly state: KnownState;
}

/** A serving process that serves this chain. */
export interface ChainMember extends ViewMember {
  setNodes(nodes: readonly NodeFacts[]): void;
  expect(transactions: ExpectedTransactions): void;
  dropState(): void;
}

export type ChainHostOptions = Pick<ViewRoundsOptions<unknown>, "onLagging" | "onRound">;

type ViewChange =
  | { readonly heads: Parameters<Parameters<HeadTracker["subscribe"]>[0]>[0] }
  | { readonly pending: PendingChange };

/** Period of the comparison of the nodes' facts. A new head sends them too. */
const NODES_MS = 100;
/** Pending views that requests of serving processes may name. At 5 views a second, some 50 s. */
const MAX_VIEWS = 256;

/** One chain in the main process: publishes its views to the serving processes, and executes for them. */
export class ChainHost {
  readonly #chain: HostedChain;
  readonly #rounds: ViewRounds<ViewChange | "known">;
  readonly #members = new Set<ChainMember>();
  readonly #encoder = new PendingEncoder();
  readonly #recentViews = new Map<string, PendingView>();
  readonly #stops: (() => void)[] = [];
  readonly #state: HostedState;
  #heads: Heads | undefined;
  #pending: PendingView | undefined;
  #sentNodes: readonly NodeFacts[] = [];
  #isKnown = false;
  #onUnused = (): void => undefined;

  constructor(chain: HostedChain, options: ChainHostOptions) {
    this.#chain = chain;
    this.#state = new HostedState(chain.state, chain.heads);
    this.#rounds = new ViewRounds({
      ...options,
      encode: (changes) => this.#encode(changes),
      snapshot: () => this.#snapshot(),
    });
    this.#stops.push(
      chain.heads.subscribe((heads) => this.#rounds.publish({ heads })),
      chain.views.subscribe((pending) => this.#rounds.publish({ pending })),
      chain.state.subscribeDropped(() => this.#dropState()),
    );
    const timer = setInterval(() => this.#sendNodes(), NODES_MS);
    timer.unref();
    this.#stops.push(() => clearInterval(timer));
    chain.ready.then(
      () => {
        this.#isKnown = true;
        this.#rounds.publish("known");
      },
      // It was closed before.
      () => undefined,
    );
  }

  attach(member: ChainMember): Promise<void> {
    this.#members.add(member);
    return this.#rounds.join(member);
  }

  detach(member: ChainMember): void {
    this.#members.delete(member);
    this.#rounds.leave(member);
    if (this.#members.size === 0) {
      this.#onUnused();
    }
  }

  /** Resolves when no serving process serves the chain any more, or after this time. */
  async untilUnused(timeoutMs: number): Promise<void> {
    if (this.#members.size === 0) {
      return;
    }
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#onUnused = resolve;
    const timer = setTimeout(resolve, timeoutMs);
    await promise;
    clearTimeout(timer);
  }

  acknowledge(member: ChainMember, round: number): void {
    this.#rounds.acknowledge(member, round);
  }

  markActive(): void {
    this.#chain.heads.markActive();
    if (this.#heads !== undefined) {
      this.#chain.views.view();
    }
  }

  want(number: bigint): void {
    this.#chain.heads.current()?.at(number);
  }

  async refresh(): Promise<void> {
    await this.#chain.heads.refresh();
    await this.#rounds.settled();
  }

  run({ kind, clientId, paramsText, block, firstTimestamp, state }: RemoteRun, call: RemoteCall): Promise<RpcResponse> {
    const { execution } = this.#chain.views;
    if (execution === undefined) {
      throw unavailable("the rules of the chain are not known");
    }
    const source = this.#stateOf(execution, state, (values) => call.report(values));
    const base = { block, source, ...(firstTimestamp !== undefined && { firstTimestamp }) };
    return execution.simulator[kind](paramsText, base, { signal: call.signal, clientId, connection: call });
  }

  readState(read: RemoteStateRead): Awaitable<StateOutcome> {
    return this.#state.read(read);
  }

  answerCall(call: RemoteAnswerCall): Awaitable<StateOutcome> {
    return this.#state.call(call);
  }

  enterState(asked: number, response: RpcResponse | undefined): void {
    this.#state.enter(asked, response);
  }

  forgetState(): void {
    this.#chain.state.reads?.forget();
    this.#dropState();
  }

  submit(raw: string): void {
    this.#chain.views.recordSubmitted(raw);
  }

  /** Informs the other serving processes. */
  expect(from: ChainMember, transactions: ExpectedTransactions): void {
    for (const member of this.#members) {
      if (member !== from) {
        member.expect(transactions);
      }
    }
  }

  advanceNonce(sender: Address, nonce: bigint): Promise<bigint> {
    return this.#chain.views.advanceNonce(sender, nonce);
  }

  filter({ name, args }: FilterCall): Promise<unknown> {
    const { filters } = this.#chain;
    const call = filters[name] as (...args: readonly unknown[]) => Promise<unknown>;
    return call.apply(filters, [...args]);
  }

  close(): void {
    for (const stop of this.#stops) {
      stop();
    }
    for (const member of this.#members) {
      this.detach(member);
    }
  }

  #stateOf(
    { stateAt }: HostedExecution,
    { base, hint, viewId }: RemoteState,
    charge: NonNullable<RequestContext["charge"]>,
  ): StateSource {
    const sealed = stateAt(base, hint, charge);
    if (viewId === undefined) {
      return sealed;
    }
    const view = this.#recentViews.get(viewId);
    if (view === undefined) {
      throw unavailable("the pending view of the request is gone");
    }
    return pendingState(view, sealed);
  }

  #encode(changes: readonly (ViewChange | "known")[]): Uint8Array {
    const plain = changes.flatMap((change): PlainChange[] => {
      if (change === "known") {
        return [];
      }
      return ["heads" in change ? this.#encodeHeads(change.heads) : this.#encodePending(change.pending)].flatMap(
        (each) => each ?? [],
      );
    });
    return this.#serialize(plain);
  }

  #encodeHeads(change: Extract<ViewChange, { heads: unknown }>["heads"]): PlainChange {
    const heads = diffHeads(this.#heads, change);
    this.#heads = change.heads;
    return { heads };
  }

  #encodePending(change: PendingChange): PlainChange | undefined {
    const { pending } = change.view;
    if (pending === undefined) {
      return undefined;
    }
    const update = this.#encoder.encode(pending, change, this.#pending);
    this.#pending = pending;
    this.#recordView(pending);
    return { pending: update };
  }

  #snapshot(): Uint8Array | undefined {
    const heads = this.#heads;
    if (heads === undefined) {
      return undefined;
    }
    const changes: PlainChange[] = [{ heads: diffHeads(undefined, { heads, from: [], to: [] }) }];
    if (this.#pending !== undefined) {
      changes.push({ pending: this.#encoder.encode(this.#pending, { extended: [], removed: [] }) });
    }
    return this.#serialize(changes);
  }

  #serialize(changes: readonly PlainChange[]): Uint8Array {
    const { genesis, heads, views, state } = this.#chain;
    this.#sentNodes = this.#nodeFacts();
    const update: ViewUpdate = {
      changes,
      info: {
        chainId: genesis.chainId,
        genesis: genesis.hash,
        blockTimeMs: heads.blockTimeMs,
        isKnown: this.#isKnown,
        executes: views.execution !== undefined,
        followsState: state.reads !== undefined,
        answersCalls: state.answers !== undefined,
      },
      nodes: this.#sentNodes,
    };
    return serialize(update);
  }

  #dropState(): void {
    for (const member of this.#members) {
      member.dropState();
    }
  }

  #recordView(view: PendingView): void {
    this.#recentViews.delete(view.id);
    this.#recentViews.set(view.id, view);
    for (const id of [...this.#recentViews.keys()].slice(0, -MAX_VIEWS)) {
      this.#recentViews.delete(id);
    }
  }

  #nodeFacts(): readonly NodeFacts[] {
    return this.#chain.nodes.map(({ name, identified, head, headHash }) => ({
      name,
      identified,
      head: head === undefined || headHash === undefined ? undefined : { number: head, hash: headHash },
    }));
  }

  #sendNodes(): void {
    const nodes = this.#nodeFacts();
    if (isDeepStrictEqual(nodes, this.#sentNodes)) {
      return;
    }
    this.#sentNodes = nodes;
    for (const member of this.#members) {
      member.setNodes(nodes);
    }
  }
}
