import type { StateReadContext } from "../core/context.ts";
import type { BlockId } from "../core/heads.ts";
import type { RpcResponse } from "../core/rpcSource.ts";
import type { StateSource } from "../core/stateReader.ts";
import type { PendingChange, View } from "../core/view.ts";
import type { Address, Hash } from "../ethereum/hex.ts";
import type { HeadTracker } from "../heads/headTracker.ts";
import type { Awaitable } from "../jsonrpc/call.ts";
import { unavailable } from "../jsonrpc/rpcError.ts";
import type { UpstreamNode } from "../nodes/upstreamNode.ts";
import { pendingState } from "../pending/pendingState.ts";
import type { Simulator } from "../simulation/simulator.ts";
import type { PrefetchHint } from "../state/fetch/prefetch.ts";
import type { FilterStore } from "../subscriptions/filterStore.ts";
import type { RemoteCall } from "../threads/channel.ts";
import type {
  ChainInfo,
  EnteredProof,
  ExpectedTransactions,
  FilterCall,
  NodeFacts,
  RemoteAnswerCall,
  RemoteRun,
  RemoteRunBase,
  RemoteStateRead,
  RunReads,
  StateOutcome,
} from "./chainProtocol.ts";
import { type ChainKnownState, HostedState } from "./hostedState.ts";
import { RunningRequests } from "./runningRequests.ts";
import { type ViewChange, ViewEncoder } from "./viewEncoder.ts";
import { type ViewMember, ViewRounds, type ViewRoundsOptions } from "./viewRounds.ts";

/** Executes calls of a chain. */
export interface HostedExecution {
  readonly simulator: Simulator;
  stateAt(block: BlockId, hint: PrefetchHint | undefined, context: StateReadContext): StateSource;
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
    recordSubmitted(raw: string): unknown;
    advanceNonce(sender: Address, nonce: bigint): Promise<bigint>;
  };
  /** Filters of clients of all serving processes. */
  readonly filters: FilterStore;
  readonly state: ChainKnownState;
}

/** A serving process that serves this chain. */
export interface ChainMember extends ViewMember {
  setNodes(nodes: readonly NodeFacts[]): void;
  expect(transactions: ExpectedTransactions): void;
  dropState(): void;
}

export type ChainHostOptions = Pick<ViewRoundsOptions<unknown>, "onLagging" | "onRound">;

/** Period of the comparison of the nodes' facts. A new head sends them too. */
const NODES_MS = 100;
/** One chain in the main process: publishes its views to the serving processes, and executes for them. */
export class ChainHost {
  readonly #chain: HostedChain;
  readonly #rounds: ViewRounds<ViewChange>;
  readonly #members = new Set<ChainMember>();
  readonly #encoder: ViewEncoder;
  readonly #stops: (() => void)[] = [];
  readonly #state: HostedState;
  readonly #requests = new RunningRequests();
  #isKnown = false;
  #onUnused = (): void => undefined;

  constructor(chain: HostedChain, options: ChainHostOptions) {
    this.#chain = chain;
    this.#state = new HostedState(chain.state, chain.heads);
    const encoder = new ViewEncoder(chain.nodes, () => this.#info());
    this.#encoder = encoder;
    this.#rounds = new ViewRounds({
      ...options,
      encode: (changes) => encoder.encode(changes),
      snapshot: () => encoder.snapshot(),
    });
    this.#stops.push(
      chain.heads.subscribe((heads) => this.#rounds.publish({ heads })),
      chain.views.subscribe((pending) => this.#rounds.publish({ pending })),
      chain.state.subscribe((change) => (change === "dropped" ? this.#dropState() : this.#rounds.publish("facts"))),
    );
    const timer = setInterval(() => this.#sendNodes(), NODES_MS);
    timer.unref();
    this.#stops.push(() => clearInterval(timer));
    chain.ready.then(
      () => {
        this.#isKnown = true;
        this.#rounds.publish("facts");
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

  /** Resolves when the heads of a chain that was idle are read and committed. Undefined if the chain was not idle. */
  markActive(): Promise<void> | undefined {
    const { heads, views } = this.#chain;
    heads.markActive();
    if (this.#encoder.hasHeads) {
      views.view();
    }
    return heads.catchingUp?.then(() => this.#rounds.settled());
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
    return this.#requests.run(state, (progress) => {
      const report = (part: Partial<RunReads>): void => call.report({ calls: 0, units: 0, ...part } satisfies RunReads);
      const caller = {
        ...{ clientId, connection: call, charge: (calls: number) => report({ calls }) },
        budget: { spend: (units: number) => report({ units }) },
      };
      const context = { caller, progress, bypassCache: state.bypassCache, noCache: false };
      const source = this.#stateOf(execution, state, context);
      const base = { block, source, ...(firstTimestamp !== undefined && { firstTimestamp }) };
      return execution.simulator[kind](paramsText, base, { signal: call.signal, caller });
    });
  }

  readState(read: RemoteStateRead): Awaitable<StateOutcome> {
    return this.#state.read(read);
  }

  answerCall(call: RemoteAnswerCall): Awaitable<StateOutcome> {
    return this.#state.call(call);
  }

  enterState(asked: number, response: RpcResponse | undefined): Awaitable<StateOutcome> {
    return this.#state.enter(asked, response);
  }

  enterProof(proof: EnteredProof): void {
    this.#state.enterProof(proof);
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
    { base, hint, viewId }: RemoteRunBase,
    context: StateReadContext,
  ): StateSource {
    const sealed = stateAt(base, hint, context);
    if (viewId === undefined) {
      return sealed;
    }
    const view = this.#encoder.recentView(viewId);
    if (view === undefined) {
      throw unavailable("the pending view of the request is gone");
    }
    return pendingState(view, sealed);
  }

  #info(): ChainInfo {
    const { genesis, heads, views, state } = this.#chain;
    return {
      chainId: genesis.chainId,
      genesis: genesis.hash,
      blockTimeMs: heads.blockTimeMs,
      isKnown: this.#isKnown,
      executes: views.execution !== undefined,
      followsState: state.reads !== undefined,
      answersCalls: state.callCache !== undefined,
    };
  }

  #dropState(): void {
    for (const member of this.#members) {
      member.dropState();
    }
  }

  #sendNodes(): void {
    const nodes = this.#encoder.takeChangedNodes();
    if (nodes === undefined) {
      return;
    }
    for (const member of this.#members) {
      member.setNodes(nodes);
    }
  }
}
