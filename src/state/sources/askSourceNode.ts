import { type Clock, systemClock } from "../../core/clock.ts";
import type { CallScope } from "../../core/context.ts";
import { isNull } from "../../core/isNull.ts";
import { NodeError } from "../../core/node.ts";
import { RETRY_LIMITS } from "../../core/retryPolicy.ts";
import type { Call } from "../../jsonrpc/call.ts";
import type { WriteSetFailure } from "../writeSet.ts";
import { isUnsupported } from "./nodeSupport.ts";
import type { SourceNode } from "./sourceNodes.ts";

/** The limit of one response. */
const MAX_BYTES = 16 * 1024 * 1024;
/** The shortest time for a write set. On chains with faster blocks, one slow response must not end all known values. */
const MIN_READ_MS = 1_000;

/** Returns the limits of one read: one block time, at least a second, and 16 MiB a response. */
export const scopeWithin = (blockTimeMs: number, signal: AbortSignal): CallScope => ({
  signal,
  deadlineMs: performance.now() + Math.max(blockTimeMs, MIN_READ_MS),
  maxBytes: MAX_BYTES,
});

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
    const outcome = await node.send(call, scope, { isVerified: true }).catch((error: unknown) => error);
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
