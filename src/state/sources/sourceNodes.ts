import { LRUCache } from "lru-cache";
import { type Clock, systemClock } from "../../core/clock.ts";
import type { CallScope } from "../../core/context.ts";
import type { BlockId } from "../../core/heads.ts";
import { timeoutSignal } from "../../core/lazySignal.ts";
import { NodeError, type NodeErrorKind } from "../../core/node.ts";
import { RETRY_LIMITS } from "../../core/retryPolicy.ts";
import { isNull } from "../../core/rpcSource.ts";
import type { Call } from "../../jsonrpc/call.ts";
import type { WriteSetFailure } from "../writeSet.ts";

/** A node that a source asks. */
export interface SourceNode {
  readonly name: string;
  /** See UpstreamNode. */
  send(call: Call, scope: CallScope, options?: { readonly isCheckedLater?: boolean }): Promise<Uint8Array>;
}

/** The nodes of one chain, as its sources use them. */
export interface SourceNodes {
  /** Returns the nodes that can be asked about the block, best first. */
  nodesFor(block: BlockId): readonly SourceNode[];
  blockTimeMs(): number;
}

/** Only one of several machines behind the URL may lack support, or an upgrade may add it, so that the mark expires. */
const UNSUPPORTED_MS = 600_000;
const MAX_NODES = 1_000;

const UNSUPPORTED_KINDS: ReadonlySet<NodeErrorKind> = new Set(["unsupportedMethod", "unauthorized", "billing"]);
const UNCLEAR_KINDS: ReadonlySet<NodeErrorKind> = new Set(["invalidParams", "other"]);
/** Texts of nodes without the tracer, or with the namespace `debug` switched off. */
const UNSUPPORTED_TEXT = /tracer|is not defined|diffmode|not (supported|available|enabled|allowed)|unknown field/i;

/** Whether a node's error shows that it does not support the request at all. */
const isUnsupported = (error: unknown): boolean =>
  error instanceof NodeError &&
  (UNSUPPORTED_KINDS.has(error.kind) || (UNCLEAR_KINDS.has(error.kind) && UNSUPPORTED_TEXT.test(error.message)));

/** Facts about nodes, by name. Each fact is forgotten after ten minutes. */
export class NodeSupport<Fact extends string> {
  readonly #facts: LRUCache<string, Fact>;

  constructor(nowMs: () => number = () => performance.now()) {
    this.#facts = new LRUCache<string, Fact>({
      max: MAX_NODES,
      ttl: UNSUPPORTED_MS,
      ttlResolution: 0,
      perf: { now: nowMs },
    });
  }

  of(node: string): Fact | undefined {
    return this.#facts.get(node);
  }

  learn(node: string, fact: Fact): void {
    this.#facts.set(node, fact);
  }

  forget(node: string): void {
    this.#facts.delete(node);
  }
}

/** The limit of one response. */
const MAX_BYTES = 16 * 1024 * 1024;
/** The shortest time for a write set. On chains with faster blocks, one slow response must not end all known values. */
const MIN_READ_MS = 1_000;

/** Returns the time for one read: one block time, at least a second. */
export const readTimeMs = (blockTimeMs: number): number => Math.max(blockTimeMs, MIN_READ_MS);

/** Returns the limits of one read: its time, and 16 MiB a response. */
export const scopeWithin = (blockTimeMs: number, signal: AbortSignal): CallScope => ({
  signal,
  deadlineMs: performance.now() + readTimeMs(blockTimeMs),
  maxBytes: MAX_BYTES,
});

/** Returns what the promise resolves to, or "late" at the deadline or abort of the scope. */
export const orLate = <T>(
  promise: Promise<T>,
  { deadlineMs, signal }: Pick<CallScope, "deadlineMs" | "signal">,
): Promise<T | "late"> => {
  const timeoutMs = Math.max(0, Math.ceil(deadlineMs - performance.now()));
  const limit = AbortSignal.any([signal, timeoutSignal(timeoutMs)]);
  const late = Promise.withResolvers<"late">();
  limit.addEventListener("abort", () => late.resolve("late"), { once: true });
  return Promise.race([promise, late.promise]);
};

/** Returns why an error of a node ends the read on it. */
const failureOf = (error: unknown, { signal, deadlineMs }: CallScope): WriteSetFailure => {
  if (isUnsupported(error)) {
    return "unsupported";
  }
  const kind = error instanceof NodeError ? error.kind : undefined;
  if (kind === "tooLarge") {
    return "tooLarge";
  }
  return signal.aborted || kind === "timeout" || performance.now() >= deadlineMs ? "late" : "error";
};

const isMissing = (outcome: unknown): boolean =>
  outcome instanceof NodeError ? outcome.kind === "missingData" : isNull({ body: outcome as Uint8Array });

/**
 * Sends a call to one node. A machine of the node may not have the block yet: then it is asked again.
 * Returns the JSON text of the result, or the reason of the failure. Never rejects.
 */
export const askSourceNode = async (
  node: SourceNode,
  call: Call,
  scope: CallScope,
  clock: Clock = systemClock,
): Promise<Uint8Array | WriteSetFailure> => {
  const delays = RETRY_LIMITS.node.delaysMs.values();
  for (;;) {
    const outcome = await node.send(call, scope, { isCheckedLater: true }).catch((error: unknown) => error);
    if (!isMissing(outcome)) {
      return outcome instanceof Uint8Array ? outcome : failureOf(outcome, scope);
    }
    const delayMs = delays.next().value;
    if (delayMs === undefined || performance.now() + delayMs >= scope.deadlineMs) {
      return "late";
    }
    await clock.sleep(delayMs, scope.signal);
    if (scope.signal.aborted) {
      return "late";
    }
  }
};
