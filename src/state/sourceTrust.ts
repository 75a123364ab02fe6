import type { BlockId } from "../core/heads.ts";
import { PeerProbation, type ProbationNode } from "./peerProbation.ts";
import { Probation, type ProbationLimits } from "./probation.ts";
import type { StateCost } from "./stateCost.ts";
import type { WriteSet, WriteSetFailure, WriteSetSource, WriteSetSourceKind } from "./writeSet.ts";

/** A source of a wrong value is not used for this time. */
const REST_MS = 3_600_000;
/** A paid source rests after this number of failures, one after the other. */
const MAX_FAILURES = 5;
/** The first rest after failures. Each further failure doubles it. */
const FIRST_REST_MS = 10_000;
const MAX_FAILURE_REST_MS = 600_000;

/** Nothing in a block proves the write sets of these sources. */
const UNPROVEN: ReadonlySet<WriteSetSourceKind> = new Set(["trace"]);

const restAfter = (failures: number): number =>
  failures < MAX_FAILURES ? 0 : Math.min(FIRST_REST_MS * 2 ** (failures - MAX_FAILURES), MAX_FAILURE_REST_MS);

/** The trust in one giver of write sets: a source, or a node of a source that nothing proves. */
class GiverTrust {
  readonly probation: Probation | undefined;
  readonly #nowMs: () => number;
  #restsUntilMs = Number.NEGATIVE_INFINITY;

  constructor(nowMs: () => number, probation: Probation | undefined) {
    this.#nowMs = nowMs;
    this.probation = probation;
  }

  get isResting(): boolean {
    return this.#nowMs() < this.#restsUntilMs;
  }

  /** Called when a value of its write sets was wrong. */
  rest(): void {
    this.#restsUntilMs = this.#nowMs() + REST_MS;
    this.probation?.restart();
  }
}

/** Compares how far two probations are. */
const byProgress = (one: Probation | undefined, other: Probation | undefined): number =>
  (one?.blocksLeft ?? 0) - (other?.blocksLeft ?? 0) || (one?.valuesLeft ?? 0) - (other?.valuesLeft ?? 0);

interface GuardedSourceOptions {
  readonly nowMs: () => number;
  readonly cost: Pick<StateCost, "spend">;
  /** The trust in each giver, by the name of its node. */
  readonly givers: Givers;
  onUsed(giver: UsedGiver): void;
}

/** A source whose units are counted and that can rest. Each giver of write sets that nothing proves is on probation. */
class GuardedSource implements WriteSetSource {
  readonly #source: WriteSetSource;
  readonly #options: GuardedSourceOptions;
  #restsUntilMs = Number.NEGATIVE_INFINITY;
  /** Since the last write set. */
  #failures = 0;
  readonly #peers: PeerProbation;

  constructor(source: WriteSetSource, options: GuardedSourceOptions) {
    this.#source = source;
    this.#options = options;
    this.#peers = new PeerProbation({
      candidates: () => options.givers.onProbation(),
      readFrom: async (node, block, signal) =>
        this.#bill((await source.readFrom?.(node, block, signal)) ?? "unsupported"),
    });
  }

  get kind(): WriteSetSourceKind {
    return this.#source.kind;
  }

  get unitsPerBlock(): number {
    return this.#source.unitsPerBlock;
  }

  get isResting(): boolean {
    const { nowMs, givers } = this.#options;
    return nowMs() < this.#restsUntilMs || givers.all.every(({ isResting }) => isResting);
  }

  get probation(): Probation | undefined {
    const usable = this.#options.givers.all.filter(({ isResting }) => !isResting);
    const [furthest] = (usable.length > 0 ? usable : this.#options.givers.all)
      .map(({ probation }) => probation)
      .sort(byProgress);
    return furthest;
  }

  probationOf({ node }: WriteSet): Probation | undefined {
    return this.#options.givers.of(node).probation;
  }

  async read(block: BlockId, signal: AbortSignal): Promise<WriteSet | WriteSetFailure> {
    if (this.isResting) {
      return "unsupported";
    }
    const { nowMs, givers, onUsed } = this.#options;
    const outcome = this.#bill(await this.#source.read(block, signal));
    if (typeof outcome !== "string") {
      this.#failures = 0;
      onUsed({ kind: this.kind, trust: givers.of(outcome.node) });
      if (this.probationOf(outcome)?.isOver === true) {
        void this.#peers.compare(outcome);
      }
    } else if (outcome !== "unsupported" && this.unitsPerBlock > 0 && !signal.aborted) {
      this.#failures++;
      this.#restsUntilMs = Math.max(this.#restsUntilMs, nowMs() + restAfter(this.#failures));
    }
    return outcome;
  }

  /** A read that fails costs as much as one that succeeds, unless no node supports the source. */
  #bill(outcome: WriteSet | WriteSetFailure): WriteSet | WriteSetFailure {
    if (outcome !== "unsupported") {
      this.#options.cost.spend("writeSets", this.unitsPerBlock);
    }
    return outcome;
  }
}

interface UsedGiver {
  readonly kind: WriteSetSourceKind;
  readonly trust: GiverTrust;
}

/** The givers of a source. A source without nodes is its only giver. */
class Givers {
  readonly #create: () => GiverTrust;
  readonly #trusts: Map<string | undefined, GiverTrust>;

  constructor(nodes: readonly string[], create: () => GiverTrust) {
    this.#create = create;
    this.#trusts = new Map((nodes.length === 0 ? [undefined] : nodes).map((node) => [node, create()]));
  }

  get all(): readonly GiverTrust[] {
    return [...this.#trusts.values()];
  }

  /** Returns the nodes on probation that do not rest, the one whose probation is furthest first. */
  onProbation(): readonly ProbationNode[] {
    return [...this.#trusts]
      .flatMap(([name, { probation, isResting }]) =>
        name === undefined || probation === undefined || probation.isOver || isResting ? [] : [{ name, probation }],
      )
      .sort((one, other) => byProgress(one.probation, other.probation));
  }

  delete(node: string): void {
    this.#trusts.delete(node);
  }

  of(node: string | undefined): GiverTrust {
    const trust = this.#trusts.get(node) ?? this.#create();
    this.#trusts.set(node, trust);
    return trust;
  }
}

export interface SourceTrustOptions {
  readonly cost: Pick<StateCost, "spend">;
  readonly nowMs: () => number;
  readonly probation: ProbationLimits;
  /** The names of the nodes of the chain. */
  readonly nodes?: readonly string[];
}

/** Rests sources and nodes of wrong write sets, and paid sources that keep failing. Remembers which one was used last. */
export class SourceTrust {
  readonly #options: SourceTrustOptions;
  /** The nodes whose write sets nothing proves. */
  readonly #nodes: Givers;
  #lastUsed: UsedGiver | undefined;

  constructor(options: SourceTrustOptions) {
    const { nowMs, probation, nodes = [] } = options;
    this.#options = options;
    this.#nodes = new Givers(nodes, () => new GiverTrust(nowMs, new Probation(probation)));
  }

  /** Returns a source that has no write sets while it rests. */
  guard(source: WriteSetSource): WriteSetSource {
    const { nowMs, cost } = this.#options;
    return new GuardedSource(source, {
      ...{ nowMs, cost },
      givers: UNPROVEN.has(source.kind) ? this.#nodes : new Givers([], () => new GiverTrust(nowMs, undefined)),
      onUsed: (giver) => {
        this.#lastUsed = giver;
      },
    });
  }

  /** Returns the nodes whose traces may be used: first the trusted ones, then those whose probation is further. */
  order<Named extends { readonly name: string }>(nodes: readonly Named[]): readonly Named[] {
    return nodes
      .filter(({ name }) => !this.#nodes.of(name).isResting)
      .sort((one, other) => byProgress(this.#nodes.of(one.name).probation, this.#nodes.of(other.name).probation));
  }

  /** Rests the giver of the newest write set: a source, or the traces of one node. Returns its kind. */
  rest(): WriteSetSourceKind | undefined {
    this.#lastUsed?.trust.rest();
    return this.#lastUsed?.kind;
  }

  /** Forgets a node that is not configured any more. Another one may get its name. */
  forget(name: string): void {
    this.#nodes.delete(name);
  }

  /** Rests the traces of a node. Its probation begins again. */
  restNode(name: string): void {
    this.#nodes.of(name).rest();
  }
}
