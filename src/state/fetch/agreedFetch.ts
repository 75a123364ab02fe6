import { type Disagreements, disagreement } from "../../cache/agreedState.ts";
import { hasSeveralOrigins, SECOND_MS } from "../../cache/otherOrigins.ts";
import { isSameResult, isSingleValue, variesByNode } from "../../cache/sameResult.ts";
import { UnverifiedError } from "../../core/node.ts";
import type { StateFetch, StateOutcomes } from "../../core/stateReader.ts";
import type { Call } from "../../jsonrpc/call.ts";
import { unavailable } from "../../jsonrpc/rpcError.ts";

export interface FetchedNode {
  readonly name: string;
  readonly origin: string;
  readonly available: boolean;
  recordWrongAnswer(error: UnverifiedError): void;
}

export interface AgreedFetchOptions<Node extends FetchedNode = FetchedNode> {
  readonly nodes: readonly Node[];
  readonly agree: 1 | 2;
  /** Of the first origin. */
  readonly timeoutMs: number;
  /** Creates a fetch that asks these nodes alone, and ends after the time. */
  readonly fetchFrom: (nodes: readonly Node[], timeoutMs: number) => StateFetch;
  /** The word of one origin is an error, because it would become known. Default: it is returned, and is not confirmed. */
  readonly isStrict?: boolean;
  readonly disagreements: Pick<Disagreements, "report">;
}

/** An execution reads several times: after a read without a response in time, it does not wait for the node again for this time. */
const LATE_MS = 5_000;

/** It predicts keys. Their values are read by other calls. */
const PREDICTION = "eth_createAccessList";
const BLOCK_METHOD = "eth_getBlockByNumber";

const encoder = new TextEncoder();

const bytesOf = (value: unknown): Uint8Array => encoder.encode(JSON.stringify(value));

/** Of a block, its hash alone is used. */
const statedBy = ({ method }: Call, outcome: unknown): unknown =>
  method === BLOCK_METHOD ? (Object(outcome).hash ?? null) : outcome;

const isError = (outcome: unknown): boolean => outcome instanceof Error;

const isSame = (call: Call, one: unknown, other: unknown): boolean => {
  const [first, second] = [statedBy(call, one), statedBy(call, other)];
  return first === second || isSameResult(call.method, bytesOf(first), bytesOf(second));
};

/** The outcomes of calls, and the node that returned all of them. */
interface Fetched<Node> {
  readonly node: Node | undefined;
  readonly outcomes: readonly unknown[];
}

/** A call whose outcome needs a second origin, with the position of the outcome. */
interface Compared {
  readonly call: Call;
  readonly at: number;
}

/** A call on which a second node does not agree. It may have returned an error. */
interface Contested extends Compared {
  readonly other: unknown;
}

/** One batch of calls while it is compared. */
class ComparedBatch<Node extends FetchedNode> {
  readonly #options: AgreedFetchOptions<Node>;
  readonly #first: Fetched<Node>;
  readonly #lateUntilMs: Map<Node, number>;
  readonly #results: unknown[];
  /** The positions of what one origin alone has stated. */
  readonly #alone = new Set<number>();
  #isCorrected = false;

  constructor(options: AgreedFetchOptions<Node>, first: Fetched<Node>, lateUntilMs: Map<Node, number>) {
    this.#lateUntilMs = lateUntilMs;
    this.#options = options;
    this.#first = first;
    this.#results = [...first.outcomes];
  }

  /** Returns outcomes on which two origins agree. What one origin alone has stated is an error, if the options say so. */
  async compare(calls: readonly Call[]): Promise<StateOutcomes> {
    await this.#compare(calls);
    const { isStrict = false } = this.#options;
    const isLeftOut = (at: number): boolean => isStrict && this.#alone.has(at);
    return {
      outcomes: this.#results.map((result, at) =>
        isLeftOut(at) ? unavailable("no second node has responded") : result,
      ),
      // With values of several nodes, it is not known which of them gave each one.
      node: this.#isCorrected ? undefined : this.#first.node?.name,
      isConfirmed: this.#alone.size === 0,
    };
  }

  async #compare(calls: readonly Call[]): Promise<void> {
    const compared = calls
      .map((call, at): Compared => ({ call, at }))
      .filter(({ call, at }) => call.method !== PREDICTION && !(this.#results[at] instanceof Error));
    const { node } = this.#first;
    const second = node && (await this.#ask(compared, [node.origin]));
    if (node === undefined || second?.node === undefined) {
      for (const { at } of compared) {
        this.#alone.add(at);
      }
      return;
    }
    const contested = compared
      .map((each, index): Contested => ({ ...each, other: second.outcomes[index] }))
      .filter(({ call, at, other }) => other instanceof Error || !isSame(call, this.#results[at], other));
    await this.#decide(contested, node, second.node);
  }

  /** Decides by the statements of a third origin. A call that stays contested has an error. */
  async #decide(contested: readonly Contested[], first: Node, second: Node): Promise<void> {
    const decidable = contested.filter(({ call }) => !variesByNode(call.method));
    const third = await this.#ask(decidable, [first.origin, second.origin]);
    const wrong = new Set<Node>();
    for (const each of contested) {
      const index = decidable.indexOf(each);
      const liar = this.#apply(each, index < 0 ? undefined : third?.outcomes[index], [first, second]);
      if (liar !== undefined && isSingleValue(each.call.method)) {
        wrong.add(liar);
      }
    }
    for (const node of wrong) {
      node.recordWrongAnswer(new UnverifiedError(node.name, "state", true));
    }
  }

  /** Sets the result of one call. Returns the node whose value is wrong. */
  #apply({ call, at, other }: Contested, vote: unknown, [first, second]: readonly [Node, Node]): Node | undefined {
    const hasVote = vote !== undefined && !(vote instanceof Error);
    const value = this.#results[at];
    if (hasVote && isSame(call, value, vote)) {
      return other instanceof Error ? undefined : second;
    }
    if (other instanceof Error && !hasVote) {
      this.#alone.add(at);
      return undefined;
    }
    if (hasVote && !(other instanceof Error) && isSame(call, other, vote)) {
      this.#results[at] = other;
      this.#isCorrected = true;
      return first;
    }
    this.#results[at] = disagreement();
    if (!variesByNode(call.method)) {
      const statements = [
        { node: first.name, value },
        { node: second.name, value: other },
      ];
      this.#options.disagreements.report(call, statements);
    }
    return undefined;
  }

  /** Asks a node of none of the origins. Returns undefined if none responds in time. */
  async #ask(compared: readonly Compared[], excludedOrigins: readonly string[]): Promise<Fetched<Node> | undefined> {
    const { nodes, fetchFrom } = this.#options;
    const begunMs = performance.now();
    const others = nodes.filter(
      (node) => !excludedOrigins.includes(node.origin) && (this.#lateUntilMs.get(node) ?? 0) <= begunMs,
    );
    if (compared.length === 0 || !others.some(({ available }) => available)) {
      return undefined;
    }
    const calls = compared.map(({ call }) => call);
    const fetch = fetchFrom(others, SECOND_MS);
    const fetched = await fetch(calls).then(
      (batch) => fetchedFrom(nodes, batch),
      () => undefined,
    );
    const endedMs = performance.now();
    const isLate = endedMs - begunMs > SECOND_MS / 2;
    if (fetched?.node !== undefined && isLate && fetched.outcomes.every(isError)) {
      this.#lateUntilMs.set(fetched.node, endedMs + LATE_MS);
    }
    return fetched;
  }
}

const fetchedFrom = <Node extends FetchedNode>(
  nodes: readonly Node[],
  { outcomes, node }: StateOutcomes,
): Fetched<Node> => ({ node: nodes.find(({ name }) => name === node), outcomes });

/**
 * Creates a fetch of state. If `agree` is 2, each outcome needs two origins. If two differ, a third origin decides. Without it, the
 * outcome is an error. Without a second origin in time, it is not confirmed.
 */
export const createAgreedFetch = <Node extends FetchedNode>(options: AgreedFetchOptions<Node>): StateFetch => {
  const { nodes, agree, timeoutMs, fetchFrom } = options;
  const fetch = fetchFrom(nodes, timeoutMs);
  if (agree === 1 || !hasSeveralOrigins(nodes)) {
    return fetch;
  }
  const lateUntilMs = new Map<Node, number>();
  return async (calls, avoidedOrigins) => {
    const first = fetchedFrom(nodes, await fetch(calls, avoidedOrigins));
    return new ComparedBatch(options, first, lateUntilMs).compare(calls);
  };
};
