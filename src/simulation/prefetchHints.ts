import { isFields } from "../json/fields.ts";
import type { PrefetchHint } from "../state/fetch/prefetch.ts";

/** Returns the calls in the first block of a payload of eth_simulateV1. Nodes can trace them to report what they read. */
export const prefetchHintOfPayload = (params: readonly unknown[]): PrefetchHint | undefined => {
  const [payload] = params;
  const blocks = isFields(payload) ? payload.blockStateCalls : undefined;
  const [block]: unknown[] = Array.isArray(blocks) ? blocks : [];
  if (!isFields(block) || !Array.isArray(block.calls)) {
    return undefined;
  }
  return { calls: block.calls.filter(isFields), stateOverrides: block.stateOverrides ?? undefined };
};

/** Returns the call of an eth_call and its overrides. */
export const prefetchHintOfCall = ([call, , stateOverrides]: readonly unknown[]): PrefetchHint | undefined =>
  isFields(call) ? { calls: [call], stateOverrides: stateOverrides ?? undefined } : undefined;
