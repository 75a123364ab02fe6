import type { BlockId } from "../core/heads.ts";
import { byProgress, GiverEvidence, type ProbationLimits } from "./giverEvidence.ts";
import { PeerComparison } from "./peerComparison.ts";
import type { StateCost } from "./stateCost.ts";
import type { WriteSet, WriteSetFailure, WriteSetSource, WriteSetSourceKind } from "./writeSet.ts";

/** A paid source is suspended after this number of failures, one after the other, if the first one was at least this time ago. */
const MAX_FAILURES = 5;
const MIN_FAILING_MS = 5_000;
/** The first suspension after failures. Each further failure doubles it. */
const FIRST_SUSPENSION_MS = 10_000;
const MAX_FAILURE_SUSPENSION_MS = 600_000;

/** Nothing in a block proves the write sets of these sources by itself. */
const UNPROVEN: ReadonlySet<WriteSetSourceKind> = new Set(["trace"]);

export interface SourceTrustOptions {
  readonly cost: Pick<StateCost, "spend">;
  readonly nowMs: () => number;
  readonly probation: ProbationLimits;
  /** The names of the nodes of the chain. */
  readonly nodes?: readonly string[];
}

/** Why traces are suspended: a value of the node was wrong, or a value that its traces carried. */
export type SuspensionCause = "value" | "traces";

/** Holds the evidence for each giver of write sets. Suspends those of wrong ones, and paid sources that keep failing. */
export class SourceTrust {
  readonly #options: SourceTrustOptions;
  /** For the traces of each node. */
  readonly #nodes: Map<string | undefined, GiverEvidence>;
  readonly #listeners = new Set<(node: string, cause: SuspensionCause) => void>();
  #lastUsed: { readonly kind: WriteSetSourceKind; readonly evidence: GiverEvidence } | undefined;

  constructor(options: SourceTrustOptions) {
    const { nodes = [] } = options;
    this.#options = options;
    this.#nodes = new Map((nodes.length === 0 ? [undefined] : nodes).map((node) => [node, this.#create()]));
  }

  /** Returns a source that has no write sets while it is suspended. Its units are counted. */
  guard(source: WriteSetSource): WriteSetSource {
    const { cost, nowMs } = this.#options;
    const proven = new GiverEvidence(undefined, nowMs);
    const needsEvidence = UNPROVEN.has(source.kind);
    return new GuardedSource(source, {
      ...{ cost, nowMs, proven },
      evidences: needsEvidence ? this.#nodes : new Map([[undefined, proven]]),
      evidenceOf: ({ node, isProven }) => (needsEvidence && isProven !== true ? this.evidenceOf(node) : proven),
      onUsed: (evidence) => {
        this.#lastUsed = { kind: source.kind, evidence };
      },
    });
  }

  /** Returns the nodes whose traces may be used: first the trusted ones, then those whose probation is further. */
  order<Named extends { readonly name: string }>(nodes: readonly Named[]): readonly Named[] {
    return nodes
      .filter(({ name }) => !this.evidenceOf(name).isSuspended)
      .sort((one, other) => byProgress(this.evidenceOf(one.name), this.evidenceOf(other.name)));
  }

  /** Suspends the giver of the newest write set: a source, or the traces of one node. Returns its kind. */
  suspendLastUsed(): WriteSetSourceKind | undefined {
    const used = this.#lastUsed;
    used?.evidence.suspend();
    for (const [node, evidence] of this.#nodes) {
      if (evidence === used?.evidence) {
        this.#publishSuspended(node, "traces");
      }
    }
    return used?.kind;
  }

  /**
   * Whether a trace of this node that another replica has read may be used. That of a node on probation is used only while no
   * other node is trusted.
   */
  mayUse(name: string): boolean {
    const evidence = this.#nodes.get(name);
    const isUsable = evidence?.isSuspended === false;
    return (
      isUsable && (evidence.isTrusted || !this.#nodes.values().some((each) => each.isTrusted && !each.isSuspended))
    );
  }

  /** Suspends the traces of a node. Its probation begins again. */
  suspendNode(name: string, cause: SuspensionCause): void {
    this.evidenceOf(name).suspend();
    this.#publishSuspended(name, cause);
  }

  /** Calls the listener when traces are suspended. Returns the function that ends this. */
  onSuspended(listener: (node: string, cause: SuspensionCause) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Forgets a node that is not configured any more. Another one may get its name. */
  forget(name: string): void {
    this.#nodes.delete(name);
  }

  #publishSuspended(node: string | undefined, cause: SuspensionCause): void {
    if (node !== undefined) {
      for (const listener of this.#listeners) {
        listener(node, cause);
      }
    }
  }

  /** Returns the evidence for a node's traces. */
  evidenceOf(node: string | undefined): GiverEvidence {
    const evidence = this.#nodes.get(node) ?? this.#create();
    this.#nodes.set(node, evidence);
    return evidence;
  }

  #create(): GiverEvidence {
    return new GiverEvidence(this.#options.probation, this.#options.nowMs);
  }
}

interface GuardedSourceOptions extends Pick<SourceTrustOptions, "nowMs" | "cost"> {
  /** Of write sets that are proven. */
  readonly proven: GiverEvidence;
  /** The evidence for each giver, by the name of its node. */
  readonly evidences: ReadonlyMap<string | undefined, GiverEvidence>;
  evidenceOf(writeSet: WriteSet): GiverEvidence;
  onUsed(evidence: GiverEvidence): void;
}

class GuardedSource implements WriteSetSource {
  readonly #source: WriteSetSource;
  readonly #options: GuardedSourceOptions;
  #suspendedUntilMs = Number.NEGATIVE_INFINITY;
  /** Since the last write set. */
  #failures = { count: 0, firstMs: 0, suspensionMs: 0 };
  readonly #peers: PeerComparison;

  constructor(source: WriteSetSource, options: GuardedSourceOptions) {
    this.#source = source;
    this.#options = options;
    this.#peers = new PeerComparison({
      nowMs: options.nowMs,
      candidates: () => this.#onProbation(),
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

  get isShared(): boolean {
    return this.#source.isShared ?? false;
  }

  get isSuspended(): boolean {
    const { nowMs, proven, evidences } = this.#options;
    return (
      nowMs() < this.#suspendedUntilMs ||
      proven.isSuspended ||
      evidences.values().every(({ isSuspended }) => isSuspended)
    );
  }

  get evidence(): GiverEvidence | undefined {
    if (this.#source.isProving === true) {
      return undefined;
    }
    const all = [...this.#options.evidences.values()];
    const usable = all.filter(({ isSuspended }) => !isSuspended);
    return (usable.length > 0 ? usable : all).sort(byProgress)[0];
  }

  evidenceOf(writeSet: WriteSet): GiverEvidence {
    return this.#options.evidenceOf(writeSet);
  }

  async read(block: BlockId, signal: AbortSignal): Promise<WriteSet | WriteSetFailure> {
    if (this.isSuspended) {
      return "unsupported";
    }
    const outcome = this.#bill(await this.#source.read(block, signal));
    if (typeof outcome !== "string") {
      const evidence = this.evidenceOf(outcome);
      this.#failures = { count: 0, firstMs: 0, suspensionMs: 0 };
      this.#options.onUsed(evidence);
      // A proven write set also has values that no trace has.
      if (evidence.isTrusted && outcome.isProven !== true) {
        void this.#peers.compare(outcome);
      }
    } else if (outcome !== "unsupported" && this.unitsPerBlock > 0 && !signal.aborted) {
      this.#onFailure(this.#options.nowMs());
    }
    return outcome;
  }

  #onFailure(nowMs: number): void {
    const { count, firstMs, suspensionMs } = this.#failures;
    const first = count === 0 ? nowMs : firstMs;
    const isSuspended = count + 1 >= MAX_FAILURES && nowMs - first >= MIN_FAILING_MS;
    const nextMs = Math.min(Math.max(2 * suspensionMs, FIRST_SUSPENSION_MS), MAX_FAILURE_SUSPENSION_MS);
    this.#failures = { count: count + 1, firstMs: first, suspensionMs: isSuspended ? nextMs : 0 };
    this.#suspendedUntilMs = Math.max(this.#suspendedUntilMs, nowMs + this.#failures.suspensionMs);
  }

  #onProbation(): readonly (readonly [string, GiverEvidence])[] {
    return [...this.#options.evidences]
      .flatMap(([name, evidence]) =>
        name === undefined || evidence.isTrusted || evidence.isSuspended ? [] : [[name, evidence] as const],
      )
      .sort(([, one], [, other]) => byProgress(one, other));
  }

  /** A read that fails costs as much as one that succeeds, unless no node supports the source. Another replica may have paid. */
  #bill(outcome: WriteSet | WriteSetFailure): WriteSet | WriteSetFailure {
    if (outcome !== "unsupported" && (typeof outcome === "string" || outcome.isShared !== true)) {
      this.#options.cost.spend("writeSets", this.unitsPerBlock);
    }
    return outcome;
  }
}
