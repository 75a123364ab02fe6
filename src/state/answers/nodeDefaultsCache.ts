import type { BlockId, HeaderFields } from "../../core/heads.ts";
import type { Call } from "../../jsonrpc/call.ts";
import { defaultsCalls, type NodeDefaults, parseDefaults } from "./nodeDefaults.ts";

export interface NodeDefaultsCacheOptions {
  /** Sends calls to one node. Returns one outcome for each, in order: a JSON value or an Error. */
  callNode(node: string, calls: readonly Call[]): Promise<readonly unknown[]>;
  headerOf(block: BlockId): HeaderFields | undefined;
  readonly nowMs: () => number;
  onSpent(calls: number): void;
  /** Called if answers that a node gave before may differ from those that it gives now. */
  onOutdated(node: string): void;
}

/** A node may be replaced by another version, or get another option. */
const MAX_AGE_MS = 600_000;
/** A node that failed is asked again after this time. */
const RETRY_MS = 30_000;

interface Known {
  readonly untilMs: number;
  readonly defaults: Promise<NodeDefaults | undefined>;
  readonly found: NodeDefaults | undefined;
  /** The most gas of a call since `onOutdated`. */
  readonly mostGas: bigint;
}

/** Answers hold with half of the gas of a call. */
const LEAST_SHARE = 2n;

/** Asks each node for the environment of its calls, and caches it for ten minutes. */
export class NodeDefaultsCache {
  readonly #options: NodeDefaultsCacheOptions;
  readonly #known = new Map<string, Known>();

  constructor(options: NodeDefaultsCacheOptions) {
    this.#options = options;
  }

  /** Returns undefined if the node does not show them. Never rejects. */
  async get(node: string, block: BlockId): Promise<NodeDefaults | undefined> {
    const known = this.#known.get(node);
    if (known !== undefined && this.#options.nowMs() < known.untilMs) {
      return known.defaults;
    }
    const defaults = this.#ask(node, block);
    // Until the node answers, the defaults of its last answer apply.
    const { found: before, mostGas = 0n } = known ?? {};
    this.#known.set(node, { defaults, found: before, mostGas, untilMs: this.#options.nowMs() + RETRY_MS });
    const found = await defaults;
    const maxAgeMs = found === undefined ? RETRY_MS : MAX_AGE_MS;
    const hasLess = found !== undefined && found.gas * LEAST_SHARE < mostGas;
    const gas = found?.gas ?? 0n;
    const most = hasLess || gas > mostGas ? gas : mostGas;
    this.#known.set(node, { defaults, found, mostGas: most, untilMs: this.#options.nowMs() + maxAgeMs });
    if (hasLess || (before?.hasZeroSender === true && found?.hasZeroSender === false)) {
      this.#options.onOutdated(node);
    }
    return found;
  }

  /** Returns the defaults if the node was asked before. If they are old, it is asked again in the background. */
  known(node: string, block: BlockId): NodeDefaults | undefined {
    const known = this.#known.get(node);
    if (known !== undefined && this.#options.nowMs() >= known.untilMs) {
      void this.get(node, block);
    }
    return known?.found;
  }

  async #ask(node: string, block: BlockId): Promise<NodeDefaults | undefined> {
    const { callNode, headerOf, onSpent } = this.#options;
    const header = headerOf(block);
    if (header === undefined) {
      return undefined;
    }
    const calls = defaultsCalls(block);
    onSpent(calls.length);
    const outcomes = await callNode(node, calls).catch(() => []);
    return parseDefaults(outcomes, header);
  }
}
