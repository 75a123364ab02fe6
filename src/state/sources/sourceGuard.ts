import type { BlockId } from "../../core/heads.ts";
import { BackOff } from "../../nodes/backOff.ts";
import type { StateCost } from "../cost.ts";
import type { WriteSet, WriteSetFailure, WriteSetSource, WriteSetSourceKind } from "../writeSet.ts";

/** The giver of a wrong value is not asked for this time. */
const SUSPENSION_MS = 3_600_000;
/** A paid source is not asked after failures in a row. */
const FAILING = { failures: 5, openMs: 10_000, maxOpenMs: 600_000 } as const;
/** On fast chains, failures within this time count once. */
const ONE_FAILURE_MS = 1_000;

export interface SourceGuardOptions {
  readonly cost: Pick<StateCost, "spend">;
  readonly nowMs: () => number;
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
  nodes: readonly string[] = [];

  constructor(options: SourceGuardOptions) {
    this.#options = options;
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
  suspend({ node, source }: Giver): void {
    const giver = node ?? source;
    if (giver !== undefined) {
      this.#suspendedUntilMs.set(giver, this.#options.nowMs() + SUSPENSION_MS);
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
  readonly #failing: BackOff;

  constructor(source: WriteSetSource, guard: SourceGuard, options: SourceGuardOptions) {
    this.#source = source;
    this.#guard = guard;
    this.#options = options;
    this.#failing = new BackOff({ ...FAILING, nowMs: options.nowMs });
  }

  get kind(): WriteSetSourceKind {
    return this.#source.kind;
  }

  get unitsPerBlock(): number {
    return this.#source.unitsPerBlock;
  }

  get isSuspended(): boolean {
    const { kind } = this;
    const isGiverSuspended = this.#guard.isSuspended(kind) || (kind === "trace" && this.#guard.areNodesSuspended);
    return isGiverSuspended || !this.#failing.available;
  }

  async read(block: BlockId, signal: AbortSignal): Promise<WriteSet | WriteSetFailure> {
    if (this.isSuspended) {
      return "unsupported";
    }
    const outcome = this.#bill(await this.#source.read(block, signal));
    if (typeof outcome !== "string") {
      this.#failing.succeeded();
      return { ...outcome, source: this.kind };
    }
    if (outcome !== "unsupported" && this.unitsPerBlock > 0 && !signal.aborted) {
      this.#failing.failed({ startMs: this.#options.nowMs() - ONE_FAILURE_MS });
    }
    return outcome;
  }

  /** A read that fails costs as much as one that succeeds, unless no node supports the source. Another replica may have paid. */
  #bill(outcome: WriteSet | WriteSetFailure): WriteSet | WriteSetFailure {
    if (outcome !== "unsupported" && (typeof outcome === "string" || outcome.isShared !== true)) {
      this.#options.cost.spend("writeSets", this.unitsPerBlock);
    }
    return outcome;
  }
}
