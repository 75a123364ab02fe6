import { NodeError, type NodeErrorKind } from "../core/node.ts";

/** Nodes that do not support a way to read many values are asked again after this time. */
export const UNSUPPORTED_MS = 600_000;

/** The errors of nodes that do not support a method, a parameter or the size of a call. Others say nothing about that. */
const UNSUPPORTED: ReadonlySet<NodeErrorKind> = new Set([
  "unsupportedMethod",
  "rejected",
  "revert",
  "executionFailed",
  "invalidParams",
  "tooLarge",
  "other",
]);

/** Whether an outcome that has not the values of all keys shows that the nodes do not support the call. */
export const isBulkUnsupported = (outcome: unknown): boolean =>
  !(outcome instanceof Error) || (outcome instanceof NodeError && UNSUPPORTED.has(outcome.kind));
