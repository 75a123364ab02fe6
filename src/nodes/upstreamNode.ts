import { createMethodRules } from "../access/methodRules.ts";
import type { CallScope, Context } from "../core/context.ts";
import { isClientFault, type Node, NodeError, UnverifiedError } from "../core/node.ts";
import type { RpcRequest, RpcResponse } from "../core/rpcSource.ts";
import type { Call } from "../jsonrpc/call.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";
import type { Verifier } from "../verification/verifier.ts";
import { BackOff } from "./backOff.ts";
import { IdentityGate, type IdentityResult } from "./identityGate.ts";
import { type Capabilities, resourceOf } from "./nodeCapabilities.ts";
import type { NodeConfig, NodeLabels, TransportOptions } from "./nodeConfig.ts";
import type { NodeHealth } from "./nodeHealth.ts";
import { NodeRequests } from "./nodeRequests.ts";
import { NodeState, type Use } from "./nodeState.ts";
import { type CallOptions, NodeTransport } from "./nodeTransport.ts";

/** What the nodes of one chain share. */
export interface NodeOptions extends TransportOptions {
  /** The nodes of the chain, this one too. */
  readonly peers?: () => readonly UpstreamNode[];
  /** Checks the chain of a node that may have been restarted, before the next request. Default: no check. */
  readonly verifyIdentity?: (node: UpstreamNode) => Promise<IdentityResult>;
  /** Verifies responses. Default: no verification. */
  readonly verifier?: Verifier;
}

/** After three errors in a row, blocks are read one at a time, at growing intervals. */
export const LINK_READS = { failures: 3, openMs: 1_000, maxOpenMs: 8_000 };

/** One configured node: one URL, which may be a load balancer with several machines. It is reached over HTTP. */
export class UpstreamNode implements Node {
  readonly config: NodeConfig;
  readonly name: string;
  /** Host and port, for log lines. */
  readonly host: string;
  readonly origin: string;
  readonly priority: number;
  readonly maxLogRanges: number;
  /** What was observed of the node. */
  readonly health: NodeHealth;
  /** Whether the node serves the chain. Until it does, only `probe` sends requests. */
  readonly identity: IdentityGate;
  /** Whether the node is asked now, and why not. */
  readonly state: NodeState;
  /** The back-off of reads of linked blocks. */
  readonly linkReads: BackOff = new BackOff(LINK_READS);
  readonly #telemetry: Telemetry;
  readonly #labels: NodeLabels;
  readonly #peers: () => readonly UpstreamNode[];
  readonly #transport: NodeTransport;
  readonly #requests: NodeRequests;
  /** Undefined if the node may get every method. */
  readonly #serves: ((method: string) => boolean) | undefined;

  constructor(config: NodeConfig, options: NodeOptions, telemetry: Telemetry) {
    const { name, methods } = config;
    const { chain, verifyIdentity, peers } = options;
    const host = new URL(config.url).host;
    this.config = config;
    this.name = name;
    this.host = host;
    this.origin = config.origin ?? host;
    this.priority = config.priority ?? 0;
    this.maxLogRanges = config.logSpans ?? 1;
    this.#telemetry = telemetry;
    this.#labels = { chain, node: name };
    this.#peers = peers ?? (() => [this]);
    this.#serves = createMethodRules({ allow: methods?.only, deny: methods?.never });
    const verify = verifyIdentity && (() => verifyIdentity(this));
    this.identity = new IdentityGate({ labels: this.#labels, host, verify, clock: options.clock }, telemetry);
    this.state = new NodeState(
      {
        ...{ labels: this.#labels, host, identity: this.identity, breaker: options.breaker, budget: config.budget },
        sendOwnCall: () => this.#transport.sendOwnCall(),
        hasOther: () => this.#hasOther(),
      },
      telemetry,
    );
    this.#transport = new NodeTransport(
      config,
      options,
      {
        ...{ identity: this.identity, state: this.state },
        serves: (method) => this.serves(method),
        hasOther: () => this.#hasOther(),
      },
      telemetry,
    );
    this.health = this.#transport.health;
    this.#requests = new NodeRequests(this.#transport, options.verifier);
  }

  get head(): bigint | undefined {
    return this.health.head;
  }

  get oldest(): bigint {
    return this.health.oldestOf("logs");
  }

  /** A further call would wait, for one of the calls in flight or for the budget of calls. */
  get isFull(): boolean {
    return this.#transport.isFull;
  }

  /** Whether connections to it can be opened. */
  get isConnectable(): boolean {
    return this.#transport.isConnectable;
  }

  get use(): Use {
    return this.state.use;
  }

  get available(): boolean {
    const { use } = this.state;
    return use === "yes" || (use === "spare" && !this.#peers().some((node) => node.state.use === "yes"));
  }

  /** Its units of the day are spent, and another node is used: its heads are not polled. */
  get isResting(): boolean {
    return this.state.isSpent && this.use === "spare" && !this.available;
  }

  serves(method: string): boolean {
    return this.#serves?.(method) ?? true;
  }

  accepts(method: string): boolean {
    return this.state.accepts(method);
  }

  recordWrongAnswer(error: UnverifiedError): void {
    this.state.wrong(error);
  }

  recordCapabilities(stated: Capabilities | undefined): void {
    this.health.recordCapabilities(stated);
  }

  recordPruned(method: string, number: bigint): void {
    this.health.recordPruned(resourceOf(method), number);
  }

  /** Sends one call unchanged and without retries. Returns the UTF-8 JSON text of its result. Rejects with NodeError. */
  send(call: Call, scope: CallScope, options?: CallOptions): Promise<Uint8Array> {
    return this.#transport.send(call, scope, options);
  }

  /** Sends several calls, whatever the state of the node. Used to check the node's chain. */
  async probe(calls: readonly Call[], scope: CallScope): Promise<(RpcResponse | NodeError)[]> {
    const outcomes = await this.#transport.batch(calls, scope);
    return outcomes.map((outcome) =>
      outcome instanceof NodeError ? outcome : { body: outcome, status: { fwd: "miss" }, node: this.name },
    );
  }

  async batch(calls: readonly Call[], scope: CallScope): Promise<(RpcResponse | NodeError)[]> {
    const method = calls[0]?.method ?? "";
    const startMs = performance.now();
    // A poll of the head is asked of any node, and shows nothing about reads.
    const isTrial = scope.isHeadRead === true ? false : this.state.ask(method);
    if (isTrial instanceof NodeError) {
      return calls.map(() => isTrial);
    }
    let error: unknown;
    try {
      if (!this.identity.isOpen) {
        await this.identity.confirm();
      }
      const outcomes = await this.probe(calls, scope);
      error = outcomes.find((outcome) => outcome instanceof NodeError);
      // If the node turned out to be of another chain meanwhile, its responses may be that chain's.
      return this.identity.isIdentified ? outcomes : calls.map(() => this.identity.unknownChain());
    } catch (caught) {
      error = caught;
      if (!(caught instanceof NodeError)) {
        throw caught;
      }
      return calls.map(() => caught);
    } finally {
      if (scope.isHeadRead !== true) {
        this.state.answered(method, { isAnswer: isAnswer(error), isTrial, startMs });
      }
    }
  }

  request(request: RpcRequest, context: Context): Promise<RpcResponse> {
    const { method } = request;
    const startMs = performance.now();
    const claimed = this.state.ask(method);
    if (claimed instanceof NodeError) {
      return Promise.reject(claimed);
    }
    const isTrial = claimed;
    return this.#requests.request(request, context).then(
      (response) => {
        if (!this.identity.isIdentified) {
          this.state.answered(method, { isAnswer: false, isTrial, startMs });
          throw this.identity.unknownChain();
        }
        this.state.answered(method, { isAnswer: true, isTrial, startMs });
        return response;
      },
      (error: unknown) => {
        this.state.answered(method, { isAnswer: isAnswer(error), isTrial, startMs });
        this.#recordRejected(error, method);
        throw error;
      },
    );
  }

  close(): Promise<void> {
    return this.#transport.close();
  }

  /** Whether another node can answer. If not, this node is used even while it hangs. */
  #hasOther(): boolean {
    return this.#peers().some((node) => node !== this && node.available);
  }

  /** Counts a response that arrived, and was counted as such, but that is not usable. */
  #recordRejected(error: unknown, method: string): void {
    if (error instanceof UnverifiedError) {
      this.health.recordError(error);
    }
    const isNew = this.state.wrong(error, method);
    if (error instanceof NodeError && (error.kind === "otherBranch" || (error.kind === "unverified" && isNew))) {
      this.#telemetry.metrics.upstreamRequests.inc({ ...this.#labels, outcome: error.kind });
    }
  }
}

/** Whether a read that ended with this error, or with none, shows that the node accepts reads. */
const isAnswer = (error: unknown): boolean =>
  error === undefined || (error instanceof NodeError && isClientFault(error.kind));
