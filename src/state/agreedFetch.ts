import { isSingleValue, variesByNode } from "../cache/agreedMethods.ts";
import { type Disagreement, disagreement } from "../cache/agreedState.ts";
import { hasSeveralOrigins, SECOND_MS } from "../cache/otherOrigins.ts";
import { isSameResult } from "../cache/sameResult.ts";
import type { BlockId } from "../core/heads.ts";
import { UnverifiedError } from "../core/node.ts";
import type { StateFetch } from "../core/stateReader.ts";
import type { Call } from "../jsonrpc/call.ts";
import { unavailable } from "../jsonrpc/rpcError.ts";
import { resolvesWithin } from "./resolvesWithin.ts";

interface FetchedNode {
  readonly name: string;
  readonly origin: string;
  readonly available: boolean;
  recordWrongAnswer(error: UnverifiedError): void;
}

export interface AgreedFetchOptions {
  readonly nodes: readonly FetchedNode[];
  readonly agree: 1 | 2;
  readonly fetch: StateFetch;
  /** The word of one origin is an error, because it would become known. Default: it is returned, and is not confirmed. */
  readonly isStrict?: boolean;
  onDisagreement(disagreement: Disagreement): void;
}

/** It predicts keys. Their values are read by other calls. */
const PREDICTION = "eth_createAccessList";
const BLOCK_METHOD = "eth_getBlockByNumber";

const encoder = new TextEncoder();

const bytesOf = (value: unknown): Uint8Array => encoder.encode(JSON.stringify(value));

/** Of a block, its hash alone is used. */
const statedBy = ({ method }: Call, outcome: unknown): unknown =>
  method === BLOCK_METHOD ? (Object(outcome).hash ?? null) : outcome;

const isSame = (call: Call, one: unknown, other: unknown): boolean => {
  const [first, second] = [statedBy(call, one), statedBy(call, other)];
  return first === second || isSameResult(call.method, bytesOf(first), bytesOf(second));
};

/** The outcomes of calls, and the node that returned all of them. */
interface Fetched {
  readonly node: FetchedNode | undefined;
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
class ComparedBatch {
  readonly #options: AgreedFetchOptions;
  readonly #block: BlockId;
  readonly #first: Fetched;
  readonly #results: unknown[];
  /** The positions of what one origin alone has stated. */
  readonly #alone = new Set<number>();
  #isCorrected = false;

  constructor(options: AgreedFetchOptions, block: BlockId, first: Fetched) {
    this.#options = options;
    this.#block = block;
    this.#first = first;
    this.#results = [...first.outcomes];
  }

  /** The outcomes. Those that one origin alone has stated are errors, if the options say so. */
  get results(): readonly unknown[] {
    return this.#options.isStrict === true
      ? this.#results.map((result, at) => (this.#alone.has(at) ? unavailable("no second node has responded") : result))
      : this.#results;
  }

  get isConfirmed(): boolean {
    return this.#alone.size === 0;
  }

  /** Undefined if several nodes gave the outcomes. */
  get giver(): string | undefined {
    return this.#isCorrected ? undefined : this.#first.node?.name;
  }

  async compare(calls: readonly Call[]): Promise<void> {
    const compared = calls
      .map((call, at): Compared => ({ call, at }))
      .filter(({ call, at }) => call.method !== PREDICTION && !(this.#results[at] instanceof Error));
    const { node } = this.#first;
    const second = node && (await this.#ask(compared, [node.origin]));
    if (node === undefined || second?.node === undefined) {
      this.#keepAlone(compared);
      return;
    }
    const contested = compared
      .map((each, index): Contested => ({ ...each, other: second.outcomes[index] }))
      .filter(({ call, at, other }) => other instanceof Error || !isSame(call, this.#results[at], other));
    await this.#decide(contested, node, second.node);
  }

  /** Decides by the statements of a third origin. A call that stays contested has an error. */
  async #decide(contested: readonly Contested[], first: FetchedNode, second: FetchedNode): Promise<void> {
    const decidable = contested.filter(({ call }) => !variesByNode(call.method));
    const third = await this.#ask(decidable, [first.origin, second.origin]);
    const wrong = new Set<FetchedNode>();
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
  #apply(
    { call, at, other }: Contested,
    vote: unknown,
    [first, second]: readonly [FetchedNode, FetchedNode],
  ): FetchedNode | undefined {
    const hasVote = vote !== undefined && !(vote instanceof Error);
    const value = this.#results[at];
    if (hasVote && isSame(call, value, vote)) {
      return other instanceof Error ? undefined : second;
    }
    if (other instanceof Error) {
      this.#alone.add(at);
      return undefined;
    }
    if (hasVote && isSame(call, other, vote)) {
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
      this.#options.onDisagreement({ call, statements });
    }
    return undefined;
  }

  #keepAlone(compared: readonly Compared[]): void {
    for (const { at } of compared) {
      this.#alone.add(at);
    }
  }

  /** Asks a node of none of the origins. Returns undefined if none responds in time. */
  async #ask(compared: readonly Compared[], avoidedOrigins: readonly string[]): Promise<Fetched | undefined> {
    const { nodes, fetch } = this.#options;
    const isOther = ({ origin }: FetchedNode): boolean => !avoidedOrigins.includes(origin);
    if (compared.length === 0 || !nodes.some((node) => node.available && isOther(node))) {
      return undefined;
    }
    const calls = compared.map(({ call }) => call);
    let found: Fetched | undefined;
    const reading = fetchFrom(nodes, fetch, calls, this.#block, avoidedOrigins).then(
      (fetched) => {
        found = fetched.node !== undefined && isOther(fetched.node) ? fetched : undefined;
      },
      () => undefined,
    );
    await resolvesWithin(reading, SECOND_MS);
    return found;
  }
}

const fetchFrom = async (
  nodes: readonly FetchedNode[],
  fetch: StateFetch,
  ...[calls, block, avoidedOrigins]: readonly [readonly Call[], BlockId, readonly string[] | undefined]
): Promise<Fetched> => {
  let name: string | undefined;
  const onNode = (node: string | undefined): void => {
    name = node;
  };
  const outcomes = await fetch(calls, block, onNode, avoidedOrigins);
  return { node: nodes.find((node) => node.name === name), outcomes };
};

/**
 * Wraps a fetch of state, so that each outcome needs two origins if `agree` is 2. If two differ, a third origin decides. Without it,
 * the outcome is an error. Without a second origin in time, it is not confirmed.
 */
export const createAgreedFetch = (options: AgreedFetchOptions): StateFetch => {
  const { nodes, agree, fetch } = options;
  if (agree === 1 || !hasSeveralOrigins(nodes)) {
    return fetch;
  }
  return async (calls, block, onNode, avoidedOrigins) => {
    const first = await fetchFrom(nodes, fetch, calls, block, avoidedOrigins);
    const batch = new ComparedBatch(options, block, first);
    await batch.compare(calls);
    onNode?.(batch.giver, batch.isConfirmed);
    return batch.results;
  };
};
