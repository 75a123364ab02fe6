import type { BlockId } from "../core/heads.ts";
import { PeerProbation, type ProbationNode } from "./peerProbation.ts";
import { Probation, type ProbationLimits } from "./probation.ts";
import type { StateCost } from "./stateCost.ts";
import type { WriteSet, WriteSetFailure, WriteSetSource, WriteSetSourceKind } from "./writeSet.ts";

/** A source of a wrong value is not used for this time. */
const SUSPENSION_MS = 3_600_000;
/** A paid source is suspended after this number of failures, one after the other. */
const MAX_FAILURES = 5;
/** The first suspension after failures. Each further failure doubles it. */
const FIRST_SUSPENSION_MS = 10_000;
const MAX_FAILURE_SUSPENSION_MS = 600_000;

/** Nothing in a block proves the write sets of these sources. */
const UNPROVEN: ReadonlySet<WriteSetSourceKind> = new Set(["trace"]);

const suspensionAfter = (failures: number): number =>
  failures < MAX_FAILURES
    ? 0
    : Math.min(FIRST_SUSPENSION_MS * 2 ** (failures - MAX_FAILURES), MAX_FAILURE_SUSPENSION_MS);

/** The trust in one giver of write sets: a source, or a node of a source that nothing proves. */
class GiverTrust {
  readonly probation: Probation | undefined;
  readonly #nowMs: () => number;
  #suspendedUntilMs = Number.NEGATIVE_INFINITY;

  constructor(nowMs: () => number, probation: Probation | undefined) {
    this.#nowMs = nowMs;
    this.probation = probation;
  }

  get isSuspended(): boolean {
    return this.#nowMs() < this.#suspendedUntilMs;
  }

  /** Called when a value of its write sets was wrong. */
  suspend(): void {
    this.#suspendedUntilMs = this.#nowMs() + SUSPENSION_MS;
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

/** A source whose units are counted and that can be suspended. Each giver of write sets that nothing proves is on probation. */
class GuardedSource implements WriteSetSource {
  readonly #source: WriteSetSource;
  readonly #options: GuardedSourceOptions;
  #suspendedUntilMs = Number.NEGATIVE_INFINITY;
  /** Since the last write set. */
  #failures = 0;
  readonly #peers: PeerProbation;

  constructor(source: WriteSetSource, options: GuardedSourceOptions) {
    this.#source = source;
    this.#options = options;
    this.#peers = new PeerProbation({
      nowMs: options.nowMs,
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

  get isSuspended(): boolean {
    const { nowMs, givers } = this.#options;
    return nowMs() < this.#suspendedUntilMs || givers.all.every(({ isSuspended }) => isSuspended);
  }

  get probation(): Probation | undefined {
    const usable = this.#options.givers.all.filter(({ isSuspended }) => !isSuspended);
    const [furthest] = (usable.length > 0 ? usable : this.#options.givers.all)
      .map(({ probation }) => probation)
      .sort(byProgress);
    return furthest;
  }

  probationOf({ node }: WriteSet): Probation | undefined {
    return this.#options.givers.of(node).probation;
  }

  async read(block: BlockId, signal: AbortSignal): Promise<WriteSet | WriteSetFailure> {
    if (this.isSuspended) {
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
      this.#suspendedUntilMs = Math.max(this.#suspendedUntilMs, nowMs() + suspensionAfter(this.#failures));
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

  /** Returns the nodes on probation that are not suspended, the one whose probation is furthest first. */
  onProbation(): readonly ProbationNode[] {
    return [...this.#trusts]
      .flatMap(([name, { probation, isSuspended }]) =>
        name === undefined || probation === undefined || probation.isOver || isSuspended ? [] : [{ name, probation }],
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

/** Suspends sources and nodes of wrong write sets, and paid sources that keep failing. Remembers which one was used last. */
export class SourceTrust {
  readonly #options: SourceTrustOptions;
  /** The nodes whose write sets nothing proves. */
  readonly #nodes: Givers;
  #lastUsed: UsedGiver | undefined;

  constructor(options: SourceTrustOptions) {
    const { nowMs, probation, nodes = [] } = options;
    this.#options = options;
    this.#nodes = new Givers(nodes, () => new GiverTrust(nowMs, new Probation(probation, nowMs)));
  }

  /** Returns a source that has no write sets while it is suspended. */
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
      .filter(({ name }) => !this.#nodes.of(name).isSuspended)
      .sort((one, other) => byProgress(this.#nodes.of(one.name).probation, this.#nodes.of(other.name).probation));
  }

  /** Suspends the giver of the newest write set: a source, or the traces of one node. Returns its kind. */
  suspendLastUsed(): WriteSetSourceKind | undefined {
    this.#lastUsed?.trust.suspend();
    return this.#lastUsed?.kind;
  }

  /** Forgets a node that is not configured any more. Another one may get its name. */
  forget(name: string): void {
    this.#nodes.delete(name);
  }

  /** Suspends the traces of a node. Its probation begins again. */
  suspendNode(name: string): void {
    this.#nodes.of(name).suspend();
  }
}
