import type { StateFetch, StateOutcomes } from "../core/stateFetch.ts";
import type { Call } from "../jsonrpc/call.ts";
import {
  type AgreedOutcome,
  type AgreeingNode,
  agreeOn,
  type Comparison,
  hasSeveralOrigins,
  type NodeOutcomes,
  SECOND_MS,
} from "./agreement.ts";
import type { Disagreements } from "./disagreements.ts";
import { isSameResult } from "./sameResult.ts";

export interface AgreedFetchOptions<Node extends AgreeingNode = AgreeingNode> {
  readonly nodes: readonly Node[];
  readonly agree: 1 | 2;
  /** Of the first origin. */
  readonly timeoutMs: number;
  /** Creates a fetch that asks these nodes alone, and ends after the time. */
  readonly fetchFrom: (nodes: readonly Node[], timeoutMs: number) => StateFetch;
  readonly disagreements: Pick<Disagreements, "report">;
}

/** An execution reads several times: after a read without a response in time, it does not wait for the node again for this time. */
const LATE_MS = 5_000;

/** It predicts keys. Their values are read by other calls. */
const PREDICTION = "eth_createAccessList";
const BLOCK_METHOD = "eth_getBlockByNumber";

const encoder = new TextEncoder();

/** Of a block, its hash alone is used. */
const bytesOf = ({ method }: Call, value: unknown): Uint8Array =>
  encoder.encode(JSON.stringify(method === BLOCK_METHOD ? (Object(value).hash ?? null) : value));

const outcomesOf = (
  nodes: readonly AgreeingNode[],
  { outcomes, node: name }: StateOutcomes,
): NodeOutcomes<unknown> | undefined => {
  const node = nodes.find((each) => each.name === name);
  return node && { node, outcomes };
};

/**
 * Creates a fetch of state. If `agree` is 2, each outcome needs two origins, as the reads of clients do. With values of several nodes,
 * it is not known which of them gave each one.
 */
export const createAgreedFetch = <Node extends AgreeingNode>(options: AgreedFetchOptions<Node>): StateFetch => {
  const { nodes, agree, timeoutMs, fetchFrom, disagreements } = options;
  const fetch = fetchFrom(nodes, timeoutMs);
  if (agree === 1 || !hasSeveralOrigins(nodes)) {
    return fetch;
  }
  const lateUntilMs = new Map<AgreeingNode, number>();
  const comparison: Comparison<Call, unknown> = {
    ask: async (calls, excludedOrigins) => {
      const begunMs = performance.now();
      const others = nodes.filter(
        (node) => !excludedOrigins.includes(node.origin) && (lateUntilMs.get(node) ?? 0) <= begunMs,
      );
      if (!others.some(({ available }) => available)) {
        return undefined;
      }
      const second = await fetchFrom(
        others,
        SECOND_MS,
      )(calls).then(
        (batch) => outcomesOf(nodes, batch),
        () => undefined,
      );
      const endedMs = performance.now();
      if (endedMs - begunMs > SECOND_MS / 2 && second?.outcomes.every((outcome) => outcome instanceof Error)) {
        lateUntilMs.set(second.node, endedMs + LATE_MS);
      }
      return second;
    },
    isCompared: ({ method }) => method !== PREDICTION,
    isSame: (call, one, other) => isSameResult(call.method, bytesOf(call, one), bytesOf(call, other)),
    textOf: String,
    isOfOneBlock: () => true,
    report: (call, statements) => disagreements.report(call, statements),
  };
  return async (calls) => {
    const batch = await fetch(calls);
    const first = outcomesOf(nodes, batch);
    if (first === undefined) {
      return { ...batch, isAgreed: false };
    }
    const agreed = await agreeOn(calls, first, comparison);
    const isAlone = ({ outcome, isAgreed }: AgreedOutcome<unknown>, at: number): boolean =>
      !isAgreed && !(outcome instanceof Error) && calls[at]?.method !== PREDICTION;
    return {
      outcomes: agreed.map(({ outcome }) => outcome),
      node: agreed.every(({ node }) => node === first.node) ? first.node.name : undefined,
      isAgreed: !agreed.some(isAlone),
    };
  };
};
