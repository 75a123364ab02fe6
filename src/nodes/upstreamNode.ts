import { createMethodRules } from "../access/methodRules.ts";
import type { CallScope, Context } from "../core/context.ts";
import { type Node, NodeError, UnverifiedError } from "../core/node.ts";
import type { RpcRequest, RpcResponse } from "../core/rpcSource.ts";
import type { Call } from "../jsonrpc/call.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";
import type { Verifier } from "../verification/verifier.ts";
import { isClientFault } from "./errorKind.ts";
import { IdentityGate, type IdentityResult } from "./identityGate.ts";
import { type Capabilities, resourceOf } from "./nodeCapabilities.ts";
import type { NodeConfig, NodeLabels, TransportOptions } from "./nodeConfig.ts";
import { Breaker, WrongAnswers } from "./nodeFailures.ts";
import type { NodeHealth } from "./nodeHealth.ts";
import { NodeRefusals } from "./nodeRefusals.ts";
import { NodeRequests } from "./nodeRequests.ts";
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

/** After three errors in a row, blocks are read one at a time, and ever more seldom. */
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
  /** The back-off of reads of linked blocks. */
  readonly linkReads: Breaker = new Breaker(LINK_READS);
  readonly #telemetry: Telemetry;
  readonly #labels: NodeLabels;
  readonly #peers: () => readonly UpstreamNode[];
  readonly #wrongAnswers: WrongAnswers;
  readonly #refusals: NodeRefusals;
  readonly #transport: NodeTransport;
  readonly #requests: NodeRequests;
  /** Undefined if the node may get every method. */
  readonly #serves: ((method: string) => boolean) | undefined;
  #isCordoned = false;

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
    this.#wrongAnswers = new WrongAnswers(this.#labels, telemetry);
    this.identity = new IdentityGate(name, verifyIdentity && (() => verifyIdentity(this)));
    this.#refusals = new NodeRefusals(
      {
        ...{ labels: this.#labels, host },
        sendOwnCall: () => this.#transport.sendOwnCall(),
        isEachOut: () => this.#peers().every(({ isRejecting }) => isRejecting),
        hasOther: () => this.#hasOther(),
      },
      telemetry,
    );
    this.#transport = new NodeTransport(
      config,
      options,
      {
        identity: this.identity,
        serves: (method) => this.serves(method),
        hasOther: () => this.#hasOther(),
        onError: (error, method) => {
          this.#wrongAnswers.record(error, method);
          this.#refusals.recordError(error, method);
        },
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

  /** True for some time after a wrong response, while the node hangs or rejects requests, and while its units of the day are spent. */
  get suspended(): boolean {
    return this.#isFaulty || this.#isSpent;
  }

  get #isFaulty(): boolean {
    return this.#wrongAnswers.isSuspended || this.#transport.isHung || this.#refusals.isOut;
  }

  get #isSpent(): boolean {
    return this.config.budget?.isSpent === true;
  }

  get isSpared(): boolean {
    return this.#isSpent && this.reachable && !this.#isFaulty && this.#hasOther();
  }

  /** True if only a suspension can prevent requests to the node. */
  get reachable(): boolean {
    return this.identity.isOpen && this.#transport.isReady && !this.#isCordoned;
  }

  /** Whether connections to it can be opened. */
  get isConnectable(): boolean {
    return this.#transport.isConnectable;
  }

  get usable(): boolean {
    return this.identity.isOpen && !this.#isCordoned && !(this.suspended && this.#hasOther());
  }

  get available(): boolean {
    return this.#transport.isReady && this.usable;
  }

  /** The node is not available only because it failed too often, or hangs. */
  get isFailing(): boolean {
    const { isHung, isBroken } = this.#transport;
    return (
      (isHung || isBroken) &&
      !this.#isCordoned &&
      // A lost connection requires a check of the node's chain, which each request to it repeats.
      this.identity.isIdentified &&
      !this.#wrongAnswers.isSuspended &&
      !this.#refusals.isOut &&
      !this.#isSpent
    );
  }

  get isRejecting(): boolean {
    return (
      this.#refusals.isOut &&
      !this.#isCordoned &&
      this.identity.isOpen &&
      !this.#wrongAnswers.isSuspended &&
      !this.#transport.isHung
    );
  }

  get isUnchecked(): boolean {
    return (
      this.identity.isIdentified &&
      !this.identity.isOpen &&
      this.#transport.isReady &&
      !this.#isCordoned &&
      !this.suspended
    );
  }

  /** The node was out because it rejected requests. One read decides whether it is used again. */
  get needsTrial(): boolean {
    return this.#refusals.needsTrial;
  }

  /** Why the node gets no requests; undefined for a node in use. It has no words of the node. */
  get unusedReason(): string | undefined {
    if (this.#isCordoned) {
      return "it is cordoned";
    }
    if (!this.identity.isIdentified) {
      return this.identity.fault?.text ?? "no response yet";
    }
    if (this.#transport.isHung) {
      return "it responds neither to requests nor to a probe";
    }
    if (this.#wrongAnswers.isSuspended) {
      return "its response was wrong";
    }
    const isSpared = this.#isSpent && !this.usable;
    return this.#refusals.reason ?? (isSpared ? "its units of the day are spent" : this.#transport.unusedReason);
  }

  /** The operator has taken the node out of use. Only its heads are followed, and its chain is checked. */
  get isCordoned(): boolean {
    return this.#isCordoned;
  }

  setCordoned(isCordoned: boolean): void {
    if (this.#isCordoned === isCordoned) {
      return;
    }
    this.#isCordoned = isCordoned;
    const { log, metrics } = this.#telemetry;
    metrics.upstreamCordoned.set(this.#labels, isCordoned ? 1 : 0);
    const fields = { ...this.#labels, host: this.host };
    log.warn(fields, isCordoned ? "node is not used: it is cordoned" : "node is used again: it is uncordoned");
  }

  serves(method: string): boolean {
    return this.#serves?.(method) ?? true;
  }

  accepts(method: string): boolean {
    return this.#refusals.accepts(method);
  }

  recordWrongAnswer(error: UnverifiedError): void {
    this.#wrongAnswers.record(error);
  }

  /** Another node answered the read of this method that this node returned the error to. */
  recordDifference(error: NodeError, method: string): void {
    this.#refusals.recordMethodError(error, method);
  }

  /** The head of the node fell behind those of the others. If the node is busy, it gets fewer requests at once. */
  recordLag(): void {
    this.#transport.recordOverload();
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

  /** Sends several calls, also to a node that is suspended or not identified. Used to check the node's chain. */
  async probe(calls: readonly Call[], scope: CallScope): Promise<(RpcResponse | NodeError)[]> {
    const outcomes = await this.#transport.batch(calls, scope);
    return outcomes.map((outcome) =>
      outcome instanceof NodeError ? outcome : { body: outcome, status: { fwd: "miss" }, node: this.name },
    );
  }

  async batch(calls: readonly Call[], scope: CallScope): Promise<(RpcResponse | NodeError)[]> {
    const method = calls[0]?.method ?? "";
    const refused = this.#refusals.begin(method);
    if (refused !== undefined) {
      return calls.map(() => refused);
    }
    try {
      if (!this.identity.isOpen) {
        await this.identity.confirm();
      }
      const outcomes = await this.probe(calls, scope);
      this.#recordEnd(
        outcomes.find((outcome) => outcome instanceof NodeError),
        method,
      );
      // If the node was suspended during the request, its responses may be another chain's.
      return this.identity.isIdentified ? outcomes : calls.map(() => this.identity.unknownChain());
    } catch (error) {
      if (!(error instanceof NodeError)) {
        throw error;
      }
      return calls.map(() => error);
    }
  }

  request(request: RpcRequest, context: Context): Promise<RpcResponse> {
    const { method } = request;
    const refused = this.#refusals.begin(method);
    if (refused !== undefined) {
      return Promise.reject(refused);
    }
    return this.#requests.request(request, context).then(
      (response) => {
        if (!this.identity.isIdentified) {
          throw this.identity.unknownChain();
        }
        this.#refusals.recordResponse(method);
        return response;
      },
      (error: unknown) => {
        this.#recordEnd(error, method);
        this.#recordRejected(error, method);
        throw error;
      },
    );
  }

  close(): Promise<void> {
    this.#wrongAnswers.close();
    return this.#transport.close();
  }

  /** Whether another node can be used. If not, this node is used even while it is suspended. */
  #hasOther(): boolean {
    return this.#peers().some((node) => node !== this && node.reachable && !node.suspended);
  }

  /** Records the end of a read for the refusals. The transport has recorded each error itself. */
  #recordEnd(error: unknown, method: string): void {
    if (error === undefined || (error instanceof NodeError && isClientFault(error.kind))) {
      this.#refusals.recordResponse(method);
    } else {
      this.#refusals.release(method);
    }
  }

  /** Counts a response that arrived, and was counted as such, but that is not usable. */
  #recordRejected(error: unknown, method: string): void {
    if (error instanceof UnverifiedError) {
      this.health.recordError(error);
    }
    const isUncounted = error instanceof UnverifiedError && !this.#wrongAnswers.isCounted(error);
    if (error instanceof NodeError && (error.kind === "otherBranch" || isUncounted)) {
      this.#telemetry.metrics.upstreamRequests.inc({ ...this.#labels, outcome: error.kind });
    }
    this.#wrongAnswers.record(error, method);
  }
}
