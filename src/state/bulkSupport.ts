import { NodeError, type NodeErrorKind } from "../core/node.ts";

/** Nodes that do not support a way to read many values are asked again after this time. */
export const UNSUPPORTED_MS = 600_000;

/** These errors do not show that the nodes lack a method. */
const TRANSIENT: ReadonlySet<NodeErrorKind> = new Set([
  ...(["billing", "rateLimited", "missingData", "otherBranch", "timeout"] as const),
  ...(["unauthorized", "unreachable", "unverified"] as const),
]);

/** Whether an outcome that has not the values of all keys shows that the nodes do not support the call. */
export const isUnsupported = (outcome: unknown): boolean =>
  !(outcome instanceof Error) || (outcome instanceof NodeError && !TRANSIENT.has(outcome.kind));
