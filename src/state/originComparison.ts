import type { UnitsOf } from "../access/providerUnits.ts";
import type { BlockId, Heads } from "../core/heads.ts";
import { createBatchFetch } from "../nodes/fetchStateBatch.ts";
import { rankNodes } from "../nodes/nodeSelection.ts";
import type { UpstreamNode } from "../nodes/upstreamNode.ts";
import { StateFetcher } from "./fetch/stateFetcher.ts";
import type { StateKey } from "./stateKey.ts";
import type { ValueProvenance } from "./store/valueStore.ts";

/** A known value that differs from a node's. */
export interface StateDifference {
  readonly key: StateKey;
  readonly block: BlockId;
  /** 64 digits of hex, for a code its hash. */
  readonly known: string;
  readonly actual: string;
  /** Whether `actual` follows from the state root of the block. */
  readonly isActualProven?: boolean;
  /** The node that returned `actual`. Undefined if its name is not known. */
  readonly node?: string | undefined;
}

/** A node that known values are compared with. */
export interface ComparedNode {
  readonly name: string;
  /** The operator of the node. Nodes of one origin are no evidence for each other. */
  readonly origin: string;
  /** Whether the node can be asked now. */
  readonly available: boolean;
  readonly reader: Pick<StateFetcher, "unitsFor" | "read" | "readSingly" | "fetch">;
}

/** Returns the function that ranks the nodes of a chain. Each node has its own reader, so that each value has one giver. */
export const comparedNodes = (
  upstreams: { readonly nodes: readonly UpstreamNode[]; readonly heads: { current(): Heads | undefined } },
  timeoutMs: number,
  unitsOf: UnitsOf,
): (() => readonly ComparedNode[]) => {
  const { nodes, heads } = upstreams;
  const readers = new Map(
    nodes.map((node) => [node, new StateFetcher(createBatchFetch({ nodes: [node], heads }, timeoutMs), unitsOf)]),
  );
  return () => {
    const current = heads.current();
    const ranked = current === undefined ? [] : rankNodes(nodes, current.latest, current);
    return ranked.flatMap((node) => {
      const { name, origin, available } = node;
      const reader = readers.get(node);
      return reader === undefined ? [] : [{ name, origin, available, reader }];
    });
  };
};

/** The value of a key that a node returned. */
export interface Statement {
  readonly node: string;
  readonly origin: string;
  readonly value: string;
}

/**
 * Why a known value is wrong. `node`: the node that gave it was wrong. `writeSets`: a write set since then is wrong.
 * `tooOld`: it is one of the two, at a block that is no longer followed. `unknown`: nothing is known about its giver.
 */
export type WrongValueCause = "node" | "writeSets" | "tooOld" | "unknown";

interface Refuted {
  /** Statements that at least two other origins contradict. */
  readonly refuted: readonly Statement[];
}

/**
 * The result of a comparison. `right`: most origins have the known value. `wrong`: most have another one.
 * `undecided`: no value has a majority. `unanswered`: fewer than two origins responded.
 */
export type Judgement =
  | ({ readonly kind: "right" } & Refuted)
  | ({ readonly kind: "wrong"; readonly value: string; readonly cause: WrongValueCause } & Refuted)
  | { readonly kind: "undecided" | "unanswered" };

/** A difference, and what nodes said about the value. */
export interface AskedDifference {
  readonly difference: StateDifference;
  readonly source: ValueProvenance | undefined;
  readonly statements: readonly Statement[];
}

export interface OriginComparisonOptions {
  /** All nodes of the chain, best first. */
  nodes(): readonly ComparedNode[];
  /** Receives the provider units of comparisons. */
  onSpent(units: number): void;
}

/** Origins that must contradict a node before it counts as wrong. */
const MIN_WITNESSES = 2;

/** Returns the only value of each origin. An origin whose nodes contradict each other has none. */
const votesOf = (statements: readonly Statement[]): ReadonlyMap<string, string | undefined> => {
  const votes = new Map<string, string | undefined>();
  for (const { origin, value } of statements) {
    votes.set(origin, votes.has(origin) && votes.get(origin) !== value ? undefined : value);
  }
  return votes;
};

/** Returns the value of more than half of the origins, and of at least two. */
export const majorityOf = (statements: readonly Statement[]): string | undefined => {
  const votes = [...votesOf(statements).values()];
  return votes.find((value) => {
    const count = votes.filter((each) => each === value).length;
    return value !== undefined && count >= MIN_WITNESSES && 2 * count > votes.length;
  });
};

const lastOfNodes = (statements: readonly Statement[]): readonly Statement[] => [
  ...new Map(statements.map((statement) => [statement.node, statement])).values(),
];

/** Returns those of the statements that are wrong at the block of a comparison. */
type Refute = (statements: readonly Statement[]) => readonly Statement[];

/** Returns the statements with another value, if at least two origins besides their own have this one. Each node counts once. */
export const refutedBy = (
  value: string,
  witnesses: readonly Statement[],
  statements: readonly Statement[],
): readonly Statement[] => {
  const origins = [...votesOf(witnesses)].filter(([, vote]) => vote === value).map(([origin]) => origin);
  const refuted = statements.filter(
    (statement) =>
      statement.value !== value && origins.filter((origin) => origin !== statement.origin).length >= MIN_WITNESSES,
  );
  return lastOfNodes(refuted);
};

/** Compares values at one block hash between the origins of a chain, and finds out which node is wrong. */
export class OriginComparison {
  readonly #options: OriginComparisonOptions;
  /** Origins in the order in which they were asked, the last one at the end. */
  readonly #asked = new Set<string>();

  constructor(options: OriginComparisonOptions) {
    this.#options = options;
  }

  /** Whether nodes of two origins can be asked. */
  get hasSeveral(): boolean {
    return new Set(this.#available().map(({ origin }) => origin)).size > 1;
  }

  /** Returns the best node of the origin that was not asked for the longest time. */
  nextNode(): ComparedNode | undefined {
    const order = [...this.#asked];
    const [next] = this.#available()
      .map((node) => ({ node, turn: order.indexOf(node.origin) }))
      .sort((one, other) => one.turn - other.turn);
    if (next !== undefined) {
      this.#asked.delete(next.node.origin);
      this.#asked.add(next.node.origin);
    }
    return next?.node;
  }

  /** Returns the best node that is not of the origin of this one. If there is none: the best node. */
  nodeBeside(name: string | undefined): ComparedNode | undefined {
    const available = this.#available();
    const origin = this.#named(name)?.origin;
    return available.find((node) => node.origin !== origin) ?? available[0];
  }

  /** Asks a node of each origin about a value that differs, and the nodes that gave the two values. Never rejects. */
  async ask(difference: StateDifference, source: ValueProvenance | undefined): Promise<AskedDifference> {
    const { key, block, node } = difference;
    const statements = await this.#ask(this.#nodesFor([node, source?.node]), key, block);
    return { difference, source, statements };
  }

  /** Returns the judgement on what nodes said. `proven`: the value if a proof shows it, which needs no other origin. Never rejects. */
  async judge(asked: AskedDifference, proven?: string): Promise<Judgement> {
    const { difference, statements } = asked;
    const value = proven ?? majorityOf(statements);
    if (value === undefined) {
      return { kind: votesOf(statements).size < MIN_WITNESSES ? "unanswered" : "undecided" };
    }
    const refute: Refute =
      proven === undefined
        ? (said) => refutedBy(value, statements, said)
        : (said) => lastOfNodes(said.filter((each) => each.value !== value));
    const refuted = refute([...statements, ...this.#statementOf(difference.node, difference.actual)]);
    if (value === difference.known) {
      return { kind: "right", refuted };
    }
    const found = await this.#findCause(asked, value, refute);
    return { kind: "wrong", value, cause: found.cause, refuted: [...refuted, ...found.refuted] };
  }

  async #findCause(
    { difference: { key, block, known }, source, statements }: AskedDifference,
    value: string,
    refute: Refute,
  ): Promise<{ readonly cause: WrongValueCause } & Refuted> {
    if (source === undefined || source.kind === "written") {
      return { cause: source === undefined ? "unknown" : "writeSets", refuted: [] };
    }
    if (refute(statements).some((each) => each.value === known)) {
      return { cause: "node", refuted: [] };
    }
    const [first] = this.#statementOf(source.node, known);
    if (first === undefined) {
      return { cause: "unknown", refuted: [] };
    }
    if (source.from?.hash === block.hash) {
      return { cause: "node", refuted: refute([first]) };
    }
    const witnesses = statements.flatMap((each) => (each.value === value && this.#named(each.node)) || []);
    const earlier = source.from === undefined ? [] : await this.#ask(witnesses, key, source.from);
    const others = earlier.filter(({ origin }) => origin !== first.origin);
    if (others.length === 0) {
      return { cause: "tooOld", refuted: [] };
    }
    if (others.some((each) => each.value === known)) {
      return { cause: "writeSets", refuted: [] };
    }
    const earlierValue = majorityOf(earlier);
    return { cause: "node", refuted: earlierValue === undefined ? [] : refutedBy(earlierValue, earlier, [first]) };
  }

  /** Returns these nodes, and the best node of each other origin. */
  #nodesFor(names: readonly (string | undefined)[]): readonly ComparedNode[] {
    const available = this.#available();
    const chosen = new Set(available.filter(({ name }) => names.includes(name)));
    for (const node of available) {
      if (![...chosen].some(({ origin }) => origin === node.origin)) {
        chosen.add(node);
      }
    }
    return [...chosen];
  }

  async #ask(nodes: readonly ComparedNode[], key: StateKey, block: BlockId): Promise<readonly Statement[]> {
    const { onSpent } = this.#options;
    const statements = await Promise.all(
      nodes.map(async ({ name, origin, reader }): Promise<readonly Statement[]> => {
        const value = (await reader.readSingly([key], block, onSpent)).values.get(key);
        return value === undefined ? [] : [{ node: name, origin, value }];
      }),
    );
    return statements.flat();
  }

  #statementOf(name: string | undefined, value: string): readonly Statement[] {
    const node = this.#named(name);
    return node === undefined ? [] : [{ node: node.name, origin: node.origin, value }];
  }

  #available(): readonly ComparedNode[] {
    return this.#options.nodes().filter(({ available }) => available);
  }

  #named(name: string | undefined): ComparedNode | undefined {
    return this.#options.nodes().find((node) => node.name === name);
  }
}
