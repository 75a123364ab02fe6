import { createMethodRules } from "../access/methodRules.ts";
import type { CallScope, Context } from "../core/context.ts";
import { NodeError, UnverifiedError } from "../core/node.ts";
import type { RpcRequest, RpcResponse } from "../core/rpcSource.ts";
import type { Hash } from "../ethereum/hex.ts";
import type { Call } from "../jsonrpc/call.ts";
import { CODES } from "../jsonrpc/rpcError.ts";
import type { MemoryBudget } from "../limits/memoryBudget.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";
import type { Verifier } from "../verification/verifier.ts";
import type { BreakerOptions } from "./breaker.ts";
import { isClientFault } from "./errorKind.ts";
import { type IdentityFault, IdentityGate, type IdentityResult } from "./identityGate.ts";
import { NodeRefusals } from "./nodeRefusals.ts";
import { type BatchOptions, NodeTransport } from "./nodeTransport.ts";
import { type AnnouncedBlock, ObservedHealth } from "./observedHealth.ts";
import type { CallOptions, UpstreamNode } from "./upstreamNode.ts";
import { VerifiedRequests } from "./verifiedRequests.ts";
import { WrongAnswers } from "./wrongAnswers.ts";

export interface NodeOptions {
  readonly name?: string | undefined;
  /** The operator of the node; default: host and port of `url`. */
  readonly origin?: string;
  readonly url: string;
  readonly wsUrl?: string | undefined;
  readonly headers?: Readonly<Record<string, string>>;
  readonly requestsPerSecond?: number | undefined;
  readonly concurrency?: number;
  /** The tier of the node. Default: 0, the first. */
  readonly priority?: number;
  /** The methods that the node may get, by name or by prefix (`debug_*`). Default: all methods. */
  readonly methods?: { readonly only?: readonly string[] | undefined; readonly never: readonly string[] };
  /** HTTP requests with several calls; default: DEFAULT_BATCH. */
  readonly batch?: BatchOptions;
}

export interface UpstreamNodeOptions extends NodeOptions {
  readonly name: string;
  readonly chain: string;
  readonly breaker: Pick<BreakerOptions, "failures" | "openMs">;
  readonly maxResponseBytes: number;
  /** A call of a client that would wait longer for the node is refused. */
  readonly maxWaitMs?: number;
  /** Counts the bytes of responses while they are received. Default: they are not counted. */
  readonly memory?: MemoryBudget | undefined;
  /** The metric label of a method, from a closed set. */
  readonly methodLabel: (method: string) => string;
  /** The units that the provider bills for a call. */
  readonly unitsOf: (method: string) => number;
  /** Called with each call to a node: whether it is of a client, and its price. */
  readonly onCall?: ((isOfClient: boolean, units: number) => void) | undefined;
  /** Whether a method may share an HTTP request with others. Default: none. */
  readonly isQuick?: (method: string) => boolean;
  /** Checks the chain of a node that may have been restarted, before the next request. Default: no check. */
  readonly verifyIdentity?: (node: UpstreamNode) => Promise<IdentityResult>;
  /** Verifies responses. Default: no verification. */
  readonly verifier?: Verifier;
  /** Called if the content of a response was wrong. */
  readonly onLie?: () => void;
  /** Whether all nodes of the chain reject requests. Default: yes, as of an only node that is asked about it. */
  readonly isEachOut?: () => boolean;
  /** Whether another node can be used. If not, this node is used even while it is suspended. */
  readonly hasOther?: () => boolean;
}

/** Most providers allow this number of calls. */
const DEFAULT_BATCH: BatchOptions = { maxCalls: 50, maxWaitMs: 0 };

const DEFAULT_MAX_WAIT_MS = 5_000;

/** The methods that follow a node's heads and check its chain. A node gets them whatever its configuration. */
const HEAD_METHODS: ReadonlySet<string> = new Set(["eth_chainId", "eth_getBlockByNumber", "eth_getBlockByHash"]);

/** A node that is reached over HTTP. */
class HttpUpstreamNode implements UpstreamNode {
  readonly name: string;
  readonly host: string;
  readonly origin: string;
  readonly priority: number;
  readonly requestsPerSecond: number | undefined;
  fault: IdentityFault | undefined;
  readonly #options: UpstreamNodeOptions;
  readonly #telemetry: Telemetry;
  readonly #labels: { readonly chain: string; readonly node: string };
  readonly #health = new ObservedHealth();
  readonly #wrongAnswers: WrongAnswers;
  readonly #gate: IdentityGate;
  readonly #refusals: NodeRefusals;
  /** Undefined if the node may get every method. */
  readonly #serves: ((method: string) => boolean) | undefined;
  #isCordoned = false;
  readonly #transport: NodeTransport;
  readonly #verified: VerifiedRequests;

  constructor(options: UpstreamNodeOptions, telemetry: Telemetry) {
    const { name, chain, verifyIdentity, verifier } = options;
    const wrongAnswers = new WrongAnswers(options, telemetry);
    const gate = new IdentityGate(verifyIdentity && (() => verifyIdentity(this)));
    const host = new URL(options.url).host;
    const isEachOut = () => options.isEachOut?.() ?? true;
    const refusals = new NodeRefusals({ chain, name, host, isEachOut, hasOther: options.hasOther }, telemetry);
    const transport = new NodeTransport(
      {
        ...options,
        requestsPerSecond: options.requestsPerSecond,
        concurrency: options.concurrency,
        batch: options.batch ?? DEFAULT_BATCH,
        maxWaitMs: options.maxWaitMs ?? DEFAULT_MAX_WAIT_MS,
        verifies: verifier !== undefined && verifier.level !== "off",
        health: this.#health,
        onLost: () => gate.requireCheck(),
        onError: (error, method) => {
          wrongAnswers.record(error, method);
          refusals.recordError(error, method);
        },
      },
      telemetry,
    );
    this.name = name;
    this.host = host;
    this.origin = options.origin ?? this.host;
    this.priority = options.priority ?? 0;
    this.requestsPerSecond = options.requestsPerSecond;
    this.#options = options;
    this.#telemetry = telemetry;
    this.#labels = { chain, node: name };
    this.#wrongAnswers = wrongAnswers;
    this.#gate = gate;
    this.#refusals = refusals;
    this.#serves = createMethodRules({ allow: options.methods?.only, deny: options.methods?.never });
    this.#transport = transport;
    this.#verified = new VerifiedRequests(this, verifier);
  }

  get identified(): boolean {
    return this.#gate.isIdentified;
  }

  set identified(value: boolean) {
    this.#gate.isIdentified = value;
  }

  get head(): bigint | undefined {
    return this.#health.head;
  }

  get headHash(): Hash | undefined {
    return this.#health.headHash;
  }

  get announced(): bigint | undefined {
    return this.#health.announced;
  }

  get oldest(): bigint {
    return this.#health.oldest;
  }

  get latencyMs(): number {
    return this.#health.latencyMs;
  }

  get errorShare(): number {
    return this.#health.errorShare;
  }

  get inFlight(): number {
    return this.#health.inFlight;
  }

  get isFull(): boolean {
    return this.#transport.isFull;
  }

  get suspended(): boolean {
    return this.#wrongAnswers.isSuspended || this.#transport.isHung || this.#refusals.isOut;
  }

  get reachable(): boolean {
    return this.#gate.isOpen && this.#transport.isReady && !this.#isCordoned;
  }

  get usable(): boolean {
    return this.#gate.isOpen && !this.#isCordoned && !(this.suspended && (this.#options.hasOther?.() ?? false));
  }

  get available(): boolean {
    return this.#transport.isReady && this.usable;
  }

  recordWrongAnswer(error: UnverifiedError): void {
    this.#wrongAnswers.record(error);
  }

  get isFailing(): boolean {
    const { isHung, isBroken } = this.#transport;
    return (
      (isHung || isBroken) &&
      !this.#isCordoned &&
      // A lost connection requires a check of the node's chain, which each request to it repeats.
      this.#gate.isIdentified &&
      !this.#wrongAnswers.isSuspended &&
      !this.#refusals.isOut
    );
  }

  get isRejecting(): boolean {
    return (
      this.#refusals.isOut &&
      !this.#isCordoned &&
      this.#gate.isOpen &&
      !this.#wrongAnswers.isSuspended &&
      !this.#transport.isHung
    );
  }

  get isUnchecked(): boolean {
    return (
      this.#gate.isIdentified && !this.#gate.isOpen && this.#transport.isReady && !this.#isCordoned && !this.suspended
    );
  }

  get needsTrial(): boolean {
    return this.#refusals.needsTrial;
  }

  get unusedReason(): string | undefined {
    if (this.#isCordoned) {
      return "it is cordoned";
    }
    if (!this.identified) {
      return this.fault?.text ?? "no response yet";
    }
    if (this.#transport.isHung) {
      return "it responds neither to requests nor to a probe";
    }
    if (this.#wrongAnswers.isSuspended) {
      return "its response was wrong";
    }
    return this.#refusals.reason ?? this.#transport.unusedReason;
  }

  serves(method: string): boolean {
    return this.#serves?.(method) ?? true;
  }

  accepts(method: string): boolean {
    return this.#refusals.accepts(method);
  }

  recordDifference(error: NodeError, method: string): void {
    this.#refusals.recordMethodError(error, method);
  }

  recordLag(): void {
    this.#transport.recordOverload();
  }

  recordLostRace(elapsedMs: number): void {
    this.#health.recordLatencyAbove(elapsedMs);
  }

  recordPruned(number: bigint): void {
    this.#health.recordPruned(number);
  }

  hashAt(number: bigint): Hash | undefined {
    return this.#health.hashAt(number);
  }

  announce(head: AnnouncedBlock): void {
    this.#health.recordHead(head);
    this.#telemetry.metrics.upstreamHead.set(this.#labels, Number(head.number));
  }

  send(call: Call, scope: CallScope, { isVerified = false, isShared = false }: CallOptions = {}): Promise<Uint8Array> {
    if (!this.serves(call.method) && !HEAD_METHODS.has(call.method)) {
      const message = `the method ${call.method} is not configured for this node`;
      return Promise.reject(new NodeError("unsupportedMethod", this.name, message, { code: CODES.METHOD_NOT_FOUND }));
    }
    const options = { isVerified, isShared: isShared && (this.#options.isQuick?.(call.method) ?? false) };
    return this.#gate.isOpen
      ? this.#transport.call(call, scope, options)
      : this.confirm().then(() => this.#transport.call(call, scope, options));
  }

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
      if (!this.#gate.isOpen) {
        await this.confirm();
      }
      const outcomes = await this.probe(calls, scope);
      this.#recordEnd(
        outcomes.find((outcome) => outcome instanceof NodeError),
        method,
      );
      // If the node was suspended during the request, its responses may be another chain's.
      return this.identified ? outcomes : calls.map(() => this.#unknownChain());
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
    return this.#verified.request(request, context).then(
      (response) => {
        if (!this.identified) {
          throw this.#unknownChain();
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

  requireIdentityCheck(): void {
    this.#gate.requireCheck();
  }

  async confirm(): Promise<void> {
    if (!(await this.#gate.open())) {
      throw this.#unknownChain();
    }
  }

  close(): Promise<void> {
    this.#wrongAnswers.close();
    return this.#transport.close();
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
    const isUncounted = error instanceof UnverifiedError && !this.#wrongAnswers.isCounted(error);
    if (error instanceof NodeError && (error.kind === "otherBranch" || isUncounted)) {
      this.#telemetry.metrics.upstreamRequests.inc({ ...this.#labels, outcome: error.kind });
    }
    this.#wrongAnswers.record(error, method);
  }

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

  #unknownChain(): NodeError {
    return new NodeError("unreachable", this.name, "the node is not known to be of this chain", {
      status: 503,
      retryAfterSeconds: 1,
    });
  }
}

export const createUpstreamNode = (options: UpstreamNodeOptions, telemetry: Telemetry): UpstreamNode =>
  new HttpUpstreamNode(options, telemetry);
