import { isNull, type RpcResponse } from "../core/rpcSource.ts";
import type { Awaitable } from "../jsonrpc/call.ts";
import type { CounterSeries } from "../telemetry/summedSeries.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";
import type { CacheEntry, ValueSource } from "./cacheEntry.ts";
import { isSameResult, variesByNode } from "./sameResult.ts";

export interface StatedValuesOptions {
  /** Name of the chain, for metrics. */
  readonly chain: string;
  /** The nodes of the chain, in the order of the configuration. */
  readonly nodes: readonly StatingNode[];
  /** Origins that must have stated a value of the state. */
  readonly stateAgree?: 1 | 2;
  readonly telemetry: Telemetry;
}

interface StatingNode {
  readonly name: string;
  readonly origin: string;
  readonly priority: number;
  /** Whether the node can be asked now. Default: it can. */
  readonly available?: boolean;
}

/** The life of a value that one origin stated, if there are others. */
const UNCONFIRMED_MS = 600_000;

/** A cached value that a node stated, and that no hash proves. */
export type StatedEntry = CacheEntry & { readonly source: ValueSource };

export const isStated = (entry: CacheEntry): entry is StatedEntry => entry.source !== undefined;

/**
 * The comparison of a value with the response of another origin. `equal`: both state the response. `different`: it is not known
 * which one is right, so that neither may be cached. `unanswered`: no other origin has responded.
 */
interface Confirmation {
  readonly response: RpcResponse;
  readonly outcome: "equal" | "different" | "unanswered";
}

/** A value whose life is over, while other origins are asked for it. */
interface Unconfirmed {
  readonly method: string;
  readonly earlier: StatedEntry;
  /** Sends the request. Nodes of these origins are asked only if no other can answer, the first of them first. */
  ask(avoidedOrigins: readonly string[]): Awaitable<RpcResponse>;
}

interface Statement {
  readonly response: RpcResponse;
  readonly body: Uint8Array;
  readonly source: ValueSource;
}

const isAvailable = ({ available }: StatingNode): boolean => available !== false;

/**
 * Decides how long the values of one chain are served that no hash proves, and confirms them. With several origins, a value of one is
 * served for ten minutes, and a value of two for the time of its retention class.
 */
export class StatedValues {
  readonly #options: StatedValuesOptions;
  /** Ranks of the origins, by the tier and the position of their first node. */
  readonly #ranks = new Map<string, number>();
  /** By the name of the node. */
  readonly #sources: ReadonlyMap<string, ValueSource>;
  readonly #lifeMs: number;
  readonly #confirmations = new Map<Confirmation["outcome"], CounterSeries>();
  /** Whether two origins must agree on values of the state. */
  readonly mustAgree: boolean;

  constructor(options: StatedValuesOptions) {
    this.#options = options;
    this.#sources = new Map(options.nodes.map(({ name, origin }) => [name, { node: name, origin }]));
    for (const { origin } of options.nodes.toSorted((a, b) => a.priority - b.priority)) {
      if (!this.#ranks.has(origin)) {
        this.#ranks.set(origin, this.#ranks.size);
      }
    }
    this.mustAgree = options.stateAgree === 2 && this.#ranks.size > 1;
    this.#lifeMs = this.#ranks.size > 1 ? UNCONFIRMED_MS : Number.POSITIVE_INFINITY;
  }

  /** Returns the source of a value that the node stated; undefined if the chain has no such node. */
  sourceOf(node: string | undefined): ValueSource | undefined {
    return node === undefined ? undefined : this.#sources.get(node);
  }

  /**
   * Whether a stated value may be served: its life is not over. If two origins must agree on values of the state, the value of one
   * is served while no other origin can be asked.
   */
  isServed({ source, storedAtMs, isConfirmed }: StatedEntry, nowMs: number, isState: boolean): boolean {
    return (
      isConfirmed === true ||
      (nowMs - storedAtMs < this.#lifeMs && !(isState && this.mustAgree && this.#hasOther(source)))
    );
  }

  /** Whether a second origin may confirm the value, because only its life is over. */
  isConfirmable({ isConfirmed }: StatedEntry, isState: boolean): boolean {
    return isConfirmed !== true && !(isState && this.mustAgree);
  }

  /**
   * Returns an entry of another tier; undefined if it must not be used. Another replica may have it from an origin without a node
   * here. `isProven`: a hash proves the value.
   */
  adopt(entry: CacheEntry, isProven: boolean): CacheEntry | undefined {
    if (entry.source === undefined) {
      // An earlier version has not recorded the node.
      return isProven || this.#lifeMs === Number.POSITIVE_INFINITY ? entry : undefined;
    }
    return this.#ranks.has(entry.source.origin) ? entry : undefined;
  }

  /** Asks another origin for a value whose life is over, and compares both. A difference is decided by a third statement. */
  async confirm(value: Unconfirmed): Promise<Confirmation> {
    const confirmation = await this.#confirm(value);
    this.#count(confirmation.outcome);
    return confirmation;
  }

  /** Returns the one of two origins whose node has the better tier, or is configured first. */
  preferred(one: string, other: string): string {
    const rankOf = (origin: string): number => this.#ranks.get(origin) ?? this.#ranks.size;
    return rankOf(one) <= rankOf(other) ? one : other;
  }

  /** Returns a name that changes when values that are cached without their node must be read again. */
  epoch(nowMs: number): string {
    const { nodes } = this.#options;
    const period = this.#ranks.size > 1 ? Math.floor(nowMs / UNCONFIRMED_MS) : 0;
    // Values that were read while one origin alone could be asked are not used once there are two.
    const isAlone = this.mustAgree && !nodes.some((node) => isAvailable(node) && this.#hasOther(node));
    return `${period}${isAlone ? ".alone" : ""}`;
  }

  #hasOther({ origin }: { readonly origin: string }): boolean {
    return this.#options.nodes.some((node) => node.origin !== origin && isAvailable(node));
  }

  async #confirm(value: Unconfirmed): Promise<Confirmation> {
    const { method, earlier, ask } = value;
    const response = await ask([earlier.source.origin]);
    if (isNull(response)) {
      return this.#keepEarlier(value, response);
    }
    const second = this.#statementOf(response);
    if (second === undefined || second.source.origin === earlier.source.origin) {
      return { response, outcome: "unanswered" };
    }
    if (isSameResult(method, second.body, earlier.body)) {
      return { response, outcome: "equal" };
    }
    return variesByNode(method) ? { response, outcome: "unanswered" } : this.#decide(value, second);
  }

  /** Asks a third origin, or the first one again, and decides by the majority. */
  async #decide({ method, earlier, ask }: Unconfirmed, second: Statement): Promise<Confirmation> {
    const first = earlier.source;
    const asked = Promise.try(() => ask([first.origin, second.source.origin]));
    const third = this.#statementOf(await asked.catch(() => undefined));
    if (third === undefined || third.source.origin === second.source.origin) {
      return { response: second.response, outcome: "different" };
    }
    if (isSameResult(method, third.body, second.body)) {
      // Two origins agree, or the first one has changed its statement about a block that cannot change.
      return { response: second.response, outcome: "equal" };
    }
    if (!isSameResult(method, third.body, earlier.body)) {
      return { response: second.response, outcome: "different" };
    }
    if (third.source.origin !== first.origin) {
      return { response: third.response, outcome: "equal" };
    }
    const { response } = this.preferred(first.origin, second.source.origin) === first.origin ? third : second;
    return { response, outcome: "different" };
  }

  /**
   * Decides about a value that another origin does not have. The node may have pruned it: the value is served on, unless a third
   * origin has none either.
   */
  async #keepEarlier({ earlier, ask }: Unconfirmed, absent: RpcResponse): Promise<Confirmation> {
    const { body, block, source } = earlier;
    const origins = [source.origin, this.sourceOf(absent.node)?.origin ?? source.origin];
    const third = await Promise.try(() => ask(origins)).catch(() => undefined);
    const origin = this.sourceOf(third?.node)?.origin;
    return third !== undefined && isNull(third) && origin !== undefined && !origins.includes(origin)
      ? { response: third, outcome: "different" }
      : { response: { ...absent, body, node: source.node, ...(block && { block }) }, outcome: "unanswered" };
  }

  #statementOf(response: RpcResponse | undefined): Statement | undefined {
    const source = this.sourceOf(response?.node);
    return response?.body instanceof Uint8Array && response.verified !== false && !isNull(response) && source
      ? { response, body: response.body, source }
      : undefined;
  }

  /** Each series is created on first use. */
  #count(outcome: Confirmation["outcome"]): void {
    const { chain, telemetry } = this.#options;
    const counter = this.#confirmations.get(outcome) ?? telemetry.metrics.cacheConfirmations.series({ chain, outcome });
    this.#confirmations.set(outcome, counter);
    counter.inc();
  }
}
