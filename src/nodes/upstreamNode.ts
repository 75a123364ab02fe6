import { setTimeout as sleep } from "node:timers/promises";
import type { BlockId } from "../core/heads.ts";
import { type Node, NodeError, type Reach, UnverifiedError } from "../core/node.ts";
import type { RequestContext, RpcRequest, RpcResponse } from "../core/rpcSource.ts";
import type { Hash } from "../ethereum/hex.ts";
import type { Call } from "../jsonrpc/call.ts";
import { CODES } from "../jsonrpc/rpcError.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";
import type { Verifier } from "../verification/verifier.ts";
import { type BreakerOptions, createBreaker } from "./breaker.ts";
import { createBudget } from "./budget.ts";
import { isFault } from "./errorKind.ts";
import { type IdentityCase, type IdentityFault, IdentityGate } from "./identityGate.ts";
import { createBatches } from "./nodeBatches.ts";
import { createNodeClient } from "./nodeClient.ts";
import { createPruneHorizon } from "./pruneHorizon.ts";
import { Suspension } from "./suspension.ts";
import { requestVerified } from "./verifiedRequest.ts";

export interface NodeOptions {
  readonly name?: string | undefined;
  readonly url: string;
  readonly wsUrl?: string | undefined;
  readonly headers?: Readonly<Record<string, string>>;
  readonly requestsPerSecond?: number | undefined;
  readonly concurrency?: number;
}

export interface UpstreamNodeOptions extends NodeOptions {
  readonly name: string;
  readonly chain: string;
  readonly breaker: Pick<BreakerOptions, "failures" | "openMs">;
  readonly maxResponseBytes: number;
  /** The metric label of a method, from a closed set. */
  readonly methodLabel: (method: string) => string;
  /** Checks the node's chain before requests are sent to one that may have been restarted. Default: no check. */
  readonly verifyIdentity?: (node: UpstreamNode) => Promise<IdentityCase>;
  /** Checks what the node answers; default: nothing is checked. */
  readonly verifier?: Verifier;
  /** Whether another node can be asked; where none can, a suspended one is. */
  readonly hasOther?: () => boolean;
}

/** What the choice between nodes looks at. */
export interface NodeHealth {
  readonly name: string;
  readonly available: boolean;
  readonly head: bigint | undefined;
  /** Of the block at `head`. */
  readonly headHash: Hash | undefined;
  readonly oldest: bigint;
  /** Moving averages: of the duration, and of failures (0 to 1). */
  readonly latencyMs: number;
  readonly errorShare: number;
  readonly inFlight: number;
}

export interface UpstreamNode extends Node, NodeHealth {
  readonly requestsPerSecond: number | undefined;
  /** The highest head that it told lately: one of its machines has that block, though `head` may be of one that is behind. */
  readonly announced: bigint | undefined;
  /** Its chain id and genesis were read and are the chain's; until then only `probe` reaches it. */
  identified: boolean;
  /** Why it is not identified, by the last try. */
  fault: IdentityFault | undefined;
  /** It gave a wrong answer lately. */
  readonly suspended: boolean;
  /** It could be asked if it were not suspended. */
  readonly reachable: boolean;
  recordWrongAnswer(error: UnverifiedError): void;
  /** One call as it is: no choice of form, no second try. */
  send(call: Call, reach: Reach): Promise<Uint8Array>;
  /** Several calls, also to a node that is not identified or suspended: for checks of its chain. */
  probe(calls: readonly Call[], reach: Reach): Promise<(RpcResponse | NodeError)[]>;
  /** It may have been restarted as a node of another chain: its identity is verified before the next request. */
  doubt(): void;
  /** Verifies it if it is in doubt. Rejects if it must not be asked. */
  confirm(): Promise<void>;
  announce(head: BlockId): void;
  close(): Promise<void>;
}

/** So long may one machine of a node be behind another. */
const ANNOUNCED_MS = 10_000;
const AVERAGE_WEIGHT = 0.1;
const DEFAULT_CONCURRENCY = 256;
/** A node that says "too many" without saying how long. */
const DEFAULT_PAUSE_MS = 1000;

export const createUpstreamNode = (options: UpstreamNodeOptions, { log, metrics }: Telemetry): UpstreamNode => {
  const { name, chain, methodLabel } = options;
  const labels = { chain, node: name };
  const budget = createBudget(options.requestsPerSecond);
  const { verifyIdentity } = options;
  const gate = new IdentityGate(verifyIdentity && (() => verifyIdentity(node)));
  const client = createNodeClient({
    name,
    url: options.url,
    ...(options.headers && { headers: options.headers }),
    concurrency: options.concurrency ?? DEFAULT_CONCURRENCY,
    maxResponseBytes: options.maxResponseBytes,
    verifies: options.verifier !== undefined && options.verifier.level !== "off",
    onRetryAfter: (seconds) => budget.pause(seconds * 1000),
    onLost: () => gate.doubt(),
  });
  const breaker = createBreaker({
    ...options.breaker,
    onChange: (open) => {
      metrics.upstreamBreaker.set(labels, open ? 1 : 0);
      log.warn({ chain, node: name }, open ? "node is not asked: it failed too often" : "node is asked again");
    },
  });
  metrics.upstreamBreaker.set(labels, 0);
  const suspension = new Suspension({
    onChange: (isSuspended) => {
      metrics.upstreamSuspended.set(labels, isSuspended ? 1 : 0);
      if (!isSuspended) log.info({ chain, node: name }, "node is asked again after its wrong answer");
    },
  });
  let head: bigint | undefined;
  let headHash: Hash | undefined;
  let announced: { readonly number: bigint; readonly atMs: number } | undefined;
  let latencyMs = 0;
  let errorShare = 0;
  let inFlight = 0;
  const depth = createPruneHorizon();

  const settled = (error: unknown, startedMs: number): void => {
    const tookMs = performance.now() - startedMs;
    const kind = error instanceof NodeError ? error.kind : error === undefined ? "ok" : "other";
    metrics.upstreamRequests.inc({ ...labels, outcome: kind });
    metrics.upstreamSeconds.observe(labels, tookMs / 1000);
    const fault = error instanceof NodeError && isFault(error);
    errorShare += AVERAGE_WEIGHT * ((fault ? 1 : 0) - errorShare);
    if (!fault && tookMs > 0) {
      latencyMs += (latencyMs === 0 ? 1 : AVERAGE_WEIGHT) * (tookMs - latencyMs);
    }
    if (error instanceof NodeError && error.kind === "rateLimited") {
      budget.pause(DEFAULT_PAUSE_MS);
    }
  };

  /** Waits for the node's budget; a wait that the caller cannot afford is an error at once. */
  const turn = async (calls: number, { signal, deadlineMs }: Reach): Promise<void> => {
    const { delayMs } = budget;
    if (delayMs > deadlineMs - performance.now()) {
      throw new NodeError("rateLimited", name, `${name}: its budget of calls is used up`, {
        code: CODES.RATE_LIMITED,
        status: 429,
        retryAfterSeconds: Math.ceil(delayMs / 1000),
      });
    }
    const waitMs = budget.take(calls);
    if (waitMs > 0) {
      await sleep(waitMs, undefined, { signal }).catch(() => {
        throw new NodeError("other", name, `${name}: the caller has left`);
      });
    }
  };

  /** One HTTP request, `calls` of them in it. */
  const tracked = async <T>(
    calls: readonly Call[],
    reach: Reach,
    run: (timeoutMs: number) => Promise<T>,
  ): Promise<T> => {
    await turn(calls.length, reach);
    for (const { method } of calls) {
      metrics.upstreamCalls.inc({ ...labels, method: methodLabel(method) });
    }
    breaker.started();
    inFlight += 1;
    const startedMs = performance.now();
    try {
      const result = await run(reach.deadlineMs - startedMs);
      breaker.succeeded();
      settled(undefined, startedMs);
      return result;
    } catch (error) {
      if (reach.signal.aborted) {
        breaker.ended();
      } else if (error instanceof NodeError && isFault(error)) {
        breaker.failed();
        settled(error, startedMs);
      } else {
        breaker.succeeded();
        settled(error, startedMs);
      }
      recordIfWrong(error, calls[0]?.method);
      throw error;
    } finally {
      inFlight -= 1;
    }
  };

  /** Counts an answer that failed verification, and suspends the node. An error passes several places on its way. */
  const counted = new WeakSet<UnverifiedError>();
  const recordWrongAnswer = (error: UnverifiedError, method?: string): void => {
    const { check, isLie } = error;
    if (!isLie || counted.has(error)) return;
    counted.add(error);
    metrics.verifyFailures.inc({ ...labels, check });
    if (!suspension.isActive) log.warn({ chain, node: name, check, method }, "node is suspended: its answer was wrong");
    suspension.begin();
  };
  const recordIfWrong = (error: unknown, method?: string): void => {
    if (error instanceof UnverifiedError) recordWrongAnswer(error, method);
  };

  const sendNow = (call: Call, reach: Reach): Promise<Uint8Array> =>
    tracked([call], reach, (timeoutMs) => client.call(call, { ...reach, timeoutMs }));
  const sendBatch = (calls: readonly Call[], reach: Reach): Promise<(Uint8Array | NodeError)[]> =>
    tracked(calls, reach, (timeoutMs) => client.batch(calls, { ...reach, timeoutMs }));
  const batches = createBatches({ name, send: sendNow, sendBatch });
  const probe = async (calls: readonly Call[], reach: Reach): Promise<(RpcResponse | NodeError)[]> => {
    const outcomes = await batches.send(calls, reach);
    for (const [index, outcome] of outcomes.entries()) recordIfWrong(outcome, calls[index]?.method);
    return outcomes.map((outcome) =>
      outcome instanceof NodeError ? outcome : { body: outcome, status: { fwd: "miss" }, node: name },
    );
  };

  const ofUnknownChain = (): NodeError =>
    new NodeError("unreachable", name, `${name}: the node is not known to be of this chain`, {
      status: 503,
      retryAfterSeconds: 1,
    });
  const confirm = async (): Promise<void> => {
    if (!(await gate.open())) throw ofUnknownChain();
  };
  const send = (call: Call, reach: Reach): Promise<Uint8Array> =>
    gate.isOpen ? sendNow(call, reach) : confirm().then(() => sendNow(call, reach));

  const node: UpstreamNode = {
    name,
    requestsPerSecond: options.requestsPerSecond,
    fault: undefined,
    get identified() {
      return gate.isIdentified;
    },
    set identified(value) {
      gate.isIdentified = value;
    },
    get head() {
      return head;
    },
    get announced() {
      return announced && performance.now() - announced.atMs <= ANNOUNCED_MS ? announced.number : head;
    },
    get headHash() {
      return headHash;
    },
    get reachable() {
      return gate.isOpen && breaker.available && !budget.paused;
    },
    get suspended() {
      return suspension.isActive;
    },
    get available() {
      return node.reachable && !(suspension.isActive && (options.hasOther?.() ?? false));
    },
    recordWrongAnswer,
    get oldest() {
      return depth.oldest(head);
    },
    get latencyMs() {
      return latencyMs;
    },
    get errorShare() {
      return errorShare;
    },
    get inFlight() {
      return inFlight;
    },
    recordPruned: (number) => depth.recordPruned(number, head),
    announce: ({ number, hash }) => {
      if (node.announced === undefined || number >= node.announced) announced = { number, atMs: performance.now() };
      head = number;
      headHash = hash;
      metrics.upstreamHead.set(labels, Number(number));
    },
    send,
    probe,
    confirm,
    doubt: () => gate.doubt(),
    batch: async (calls: readonly Call[], reach: Reach): Promise<(RpcResponse | NodeError)[]> => {
      try {
        if (!gate.isOpen) await confirm();
        const outcomes = await probe(calls, reach);
        // Suspended meanwhile: what it answered may be another chain's.
        return node.identified ? outcomes : calls.map(ofUnknownChain);
      } catch (error) {
        if (!(error instanceof NodeError)) throw error;
        return calls.map(() => error);
      }
    },
    request: (question: RpcRequest, context: RequestContext) =>
      ask(question, context).then(
        (answer) => {
          if (!node.identified) throw ofUnknownChain();
          return answer;
        },
        (error: unknown) => {
          // The node answered, and was counted; what it answered is no answer.
          const isUncounted = error instanceof UnverifiedError && !counted.has(error);
          if (error instanceof NodeError && (error.kind === "otherBranch" || isUncounted)) {
            metrics.upstreamRequests.inc({ ...labels, outcome: error.kind });
          }
          recordIfWrong(error, question.method);
          throw error;
        },
      ),
    close: () => {
      suspension.close();
      return client.close();
    },
  };
  const ask = requestVerified(node, options.verifier);
  return node;
};
