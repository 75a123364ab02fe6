import { isClientFault, NodeError, UnverifiedError } from "../core/node.ts";
import type { Call } from "../jsonrpc/call.ts";
import { unavailable } from "../jsonrpc/rpcError.ts";
import type { StatedResult } from "./disagreements.ts";
import { isSingleValue, variesByNode } from "./sameResult.ts";

export interface AgreeingNode {
  readonly name: string;
  readonly origin: string;
  readonly available: boolean;
  recordWrongAnswer(error: UnverifiedError): void;
}

/** A first response waits up to this time for a second source. */
export const SECOND_MS = 1_500;

/** Whether nodes have at least two origins, so they can be compared. */
export const hasSeveralOrigins = (nodes: readonly { readonly origin: string }[]): boolean =>
  new Set(nodes.map(({ origin }) => origin)).size > 1;

/** Whether an outcome says something about the chain. An error of the node itself does not. */
const isStatement = (outcome: unknown): boolean =>
  !(outcome instanceof Error) || (outcome instanceof NodeError && isClientFault(outcome.kind));

const isSameError = ({ data: one }: NodeError, { data: other }: NodeError): boolean =>
  one === undefined || other === undefined || JSON.stringify(one).toLowerCase() === JSON.stringify(other).toLowerCase();

/** What one node returned for reads, in their order: results and errors. */
export interface NodeOutcomes<Result> {
  readonly node: AgreeingNode;
  readonly outcomes: readonly (Result | Error)[];
}

/** The outcome of one read, and whether two origins agree on it. */
export interface AgreedOutcome<Result> {
  readonly outcome: Result | Error;
  readonly node: AgreeingNode;
  /** Whether two origins have stated it. False: one origin alone has, or it is an error because no two agree. */
  readonly isAgreed: boolean;
}

/** How reads are sent to other origins, and their results compared. */
export interface Comparison<Read extends Call, Result> {
  /** Asks a node of none of the origins. Resolves with undefined if none responds in time. */
  ask(reads: readonly Read[], excludedOrigins: readonly string[]): Promise<NodeOutcomes<Result> | undefined>;
  /** Whether a second origin must state the outcome of the read. */
  isCompared(read: Read): boolean;
  isSame(read: Read, one: Result, other: Result): boolean;
  /** Formats a result for the log. */
  textOf(result: Result): string;
  /** Whether the read is of one block on all nodes, so a node with another single value is wrong. */
  isOfOneBlock(read: Read): boolean;
  /** Called if no two origins agree. */
  report(read: Read, statements: readonly StatedResult[]): void;
}

/** What two nodes stated about one read. */
interface Compared<Read, Result> {
  readonly read: Read;
  /** The place of the read. */
  readonly at: number;
  readonly one: Result | Error;
  readonly other: Result | Error;
}

const isSameOutcome = <Read extends Call, Result>(
  { isSame }: Comparison<Read, Result>,
  read: Read,
  one: Result | Error,
  other: Result | Error,
): boolean => {
  if (one instanceof Error || other instanceof Error) {
    return one instanceof NodeError && other instanceof NodeError && isSameError(one, other);
  }
  return isSame(read, one, other);
};

/**
 * Compares what one node returned with another origin, and asks a third one for what differs. Two of three decide; if no
 * two agree, the outcome is an error. Without a second origin in time, it is that of the first.
 */
export const agreeOn = async <Read extends Call, Result>(
  reads: readonly Read[],
  first: NodeOutcomes<Result>,
  comparison: Comparison<Read, Result>,
): Promise<readonly AgreedOutcome<Result>[]> => {
  const { node } = first;
  const agreed = first.outcomes.map((outcome): AgreedOutcome<Result> => ({ outcome, node, isAgreed: false }));
  const stated = reads.flatMap((read, at) => {
    const one = first.outcomes[at];
    return one !== undefined && isStatement(one) && comparison.isCompared(read) ? [{ read, at, one }] : [];
  });
  const asked = stated.map(({ read }) => read);
  const second = asked.length === 0 ? undefined : await comparison.ask(asked, [node.origin]);
  if (second === undefined) {
    return agreed;
  }
  const compared = stated.flatMap((each, index): readonly Compared<Read, Result>[] => {
    const other = second.outcomes[index];
    return other !== undefined && isStatement(other) ? [{ ...each, other }] : [];
  });
  const contested = compared.filter(({ read, one, other }) => !isSameOutcome(comparison, read, one, other));
  for (const { at, one } of compared) {
    agreed[at] = { outcome: one, node, isAgreed: true };
  }
  for (const [at, decided] of await decide(contested, [node, second.node], comparison)) {
    agreed[at] = decided;
  }
  return agreed;
};

/** Asks a third origin for what two nodes state differently. Returns the outcomes by the place of the read. */
const decide = async <Read extends Call, Result>(
  contested: readonly Compared<Read, Result>[],
  [first, second]: readonly [AgreeingNode, AgreeingNode],
  comparison: Comparison<Read, Result>,
): Promise<ReadonlyMap<number, AgreedOutcome<Result>>> => {
  const agreed = new Map<number, AgreedOutcome<Result>>();
  const reads = contested.map(({ read }) => read);
  const third = reads.length === 0 ? undefined : await comparison.ask(reads, [first.origin, second.origin]);
  const wrong = new Set<AgreeingNode>();
  for (const [index, { read, at, one, other }] of contested.entries()) {
    const vote = third?.outcomes[index];
    const hasVote = (outcome: Result | Error): boolean =>
      vote !== undefined && isStatement(vote) && isSameOutcome(comparison, read, outcome, vote);
    const right = [
      { outcome: one, node: first },
      { outcome: other, node: second },
    ].find(({ outcome }) => hasVote(outcome));
    if (right === undefined) {
      report(comparison, read, [
        { node: first.name, value: one },
        { node: second.name, value: other },
      ]);
      agreed.set(at, { outcome: disagreement(), node: first, isAgreed: false });
      continue;
    }
    agreed.set(at, { ...right, isAgreed: true });
    if (isSingleValue(read.method) && comparison.isOfOneBlock(read)) {
      wrong.add(right.node === first ? second : first);
    }
  }
  for (const node of wrong) {
    node.recordWrongAnswer(new UnverifiedError(node.name, "state", true));
  }
  return agreed;
};

/** Nodes of different software may return different results of some methods. */
const report = <Read extends Call, Result>(
  comparison: Comparison<Read, Result>,
  read: Read,
  statements: readonly { readonly node: string; readonly value: Result | Error }[],
): void => {
  if (!variesByNode(read.method)) {
    const shown = statements.map(({ node, value }) => ({
      node,
      value: value instanceof Error ? value.message : comparison.textOf(value),
    }));
    comparison.report(read, shown);
  }
};

/** The error of a read on whose result the origins do not agree. */
const disagreement = () =>
  unavailable("nodes of two providers return different results for this read of the state, and no other one decides");
