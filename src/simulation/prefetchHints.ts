import type { PrefetchHint } from "../evm/reads/prefetch.ts";

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** Returns the calls in the first block of a payload of eth_simulateV1. Nodes can trace them to report what they read. */
export const prefetchHintOfPayload = (params: readonly unknown[]): PrefetchHint | undefined => {
  const [payload] = params;
  const blocks = isRecord(payload) ? payload.blockStateCalls : undefined;
  const [block]: unknown[] = Array.isArray(blocks) ? blocks : [];
  if (!isRecord(block) || !Array.isArray(block.calls)) {
    return undefined;
  }
  return { calls: block.calls.filter(isRecord), stateOverrides: block.stateOverrides ?? undefined };
};

/** Returns the call of an eth_call and its overrides. */
export const prefetchHintOfCall = ([call, , stateOverrides]: readonly unknown[]): PrefetchHint | undefined =>
  isRecord(call) ? { calls: [call], stateOverrides: stateOverrides ?? undefined } : undefined;
