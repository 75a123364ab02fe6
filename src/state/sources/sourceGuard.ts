import type { BlockId } from "../../core/heads.ts";
import type { StateCost } from "../cost.ts";
import type { WriteSet, WriteSetFailure, WriteSetSource, WriteSetSourceKind } from "../writeSet.ts";

/** The giver of a wrong value is not asked for this time. */
const SUSPENSION_MS = 3_600_000;
/** A paid source is suspended after this number of failures, one after the other, if the first one was at least this time ago. */
const MAX_FAILURES = 5;
const MIN_FAILING_MS = 5_000;
/** The first suspension after failures. Each further failure doubles it. */
const FIRST_SUSPENSION_MS = 10_000;
const MAX_FAILURE_SUSPENSION_MS = 600_000;

export interface SourceGuardOptions {
  readonly cost: Pick<StateCost, "spend">;
  readonly nowMs: () => number;
  /** The names of the nodes of the chain. */
  readonly nodes: readonly string[];
}

/** Who gave a write set: a node on whose word alone it is, or a source. */
type Giver = Pick<WriteSet, "node" | "source">;

/**
 * Knows which givers of write sets passed a check, and which are not asked for some time. Those of wrong values are suspended for an
 * hour, paid sources while they keep failing. Counts the units of all.
 */
export class SourceGuard {
  readonly #options: SourceGuardOptions;
  readonly #passed = new Set<string>();
  /** Times of nodes and of kinds of sources. */
  readonly #suspendedUntilMs = new Map<string, number>();
  /** The names of the nodes of the chain. A reload can add nodes. */
  nodes: readonly string[];

  constructor(options: SourceGuardOptions) {
    this.#options = options;
    this.nodes = options.nodes;
  }

  /** Returns a source that has no write sets while it is suspended. Its units are counted. */
  guard(source: WriteSetSource): WriteSetSource {
    return new GuardedSource(source, this, this.#options);
  }

  /** Whether the traces of a node, or a source, are not asked for now. */
  isSuspended(giver: string): boolean {
    return this.#options.nowMs() < (this.#suspendedUntilMs.get(giver) ?? 0);
  }

  /** Whether no node is asked for traces now. */
  get areNodesSuspended(): boolean {
    const { nodes } = this;
    return nodes.length > 0 && nodes.every((name) => this.isSuspended(name));
  }

  /** Suspends the giver of a wrong value for an hour. It must pass a check again. */
  suspend({ node, source }: Giver, forMs = SUSPENSION_MS): void {
    const giver = node ?? source;
    if (giver !== undefined) {
      const untilMs = this.#options.nowMs() + forMs;
      this.#suspendedUntilMs.set(giver, Math.max(this.#suspendedUntilMs.get(giver) ?? 0, untilMs));
      this.#passed.delete(giver);
    }
  }

  /** Called when values that these nodes carried agreed with a node. */
  pass(carriers: Iterable<string>): void {
    for (const carrier of carriers) {
      if (!this.isSuspended(carrier)) {
        this.#passed.add(carrier);
      }
    }
  }

  /** Whether values that these nodes carried may answer. */
  havePassed(carriers: Iterable<string>): boolean {
    return [...carriers].every((carrier) => this.#passed.has(carrier));
  }
}

class GuardedSource implements WriteSetSource {
  readonly #source: WriteSetSource;
  readonly #guard: SourceGuard;
  readonly #options: SourceGuardOptions;
  /** Since the last write set. */
  #failures = { count: 0, firstMs: 0, suspensionMs: 0 };

  constructor(source: WriteSetSource, guard: SourceGuard, options: SourceGuardOptions) {
    this.#source = source;
    this.#guard = guard;
    this.#options = options;
  }

  get kind(): WriteSetSourceKind {
    return this.#source.kind;
  }

  get unitsPerBlock(): number {
    return this.#source.unitsPerBlock;
  }

  get isSuspended(): boolean {
    return this.#guard.isSuspended(this.kind) || (this.kind === "trace" && this.#guard.areNodesSuspended);
  }

  async read(block: BlockId, signal: AbortSignal): Promise<WriteSet | WriteSetFailure> {
    if (this.isSuspended) {
      return "unsupported";
    }
    const outcome = this.#bill(await this.#source.read(block, signal));
    if (typeof outcome !== "string") {
      this.#failures = { count: 0, firstMs: 0, suspensionMs: 0 };
      return { ...outcome, source: this.kind };
    }
    if (outcome !== "unsupported" && this.unitsPerBlock > 0 && !signal.aborted) {
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
    if (isSuspended) {
      this.#guard.suspend({ source: this.kind }, nextMs);
    }
  }

  /** A read that fails costs as much as one that succeeds, unless no node supports the source. Another replica may have paid. */
  #bill(outcome: WriteSet | WriteSetFailure): WriteSet | WriteSetFailure {
    if (outcome !== "unsupported" && (typeof outcome === "string" || outcome.isShared !== true)) {
      this.#options.cost.spend("writeSets", this.unitsPerBlock);
    }
    return outcome;
  }
}
