import type { BlockId } from "../../core/heads.ts";
import { BackOff } from "../../nodes/backOff.ts";
import type { StateCost } from "../cost.ts";
import type { WriteSet, WriteSetFailure, WriteSetSource, WriteSetSourceKind } from "../writeSet.ts";

/** The source of a wrong value is not asked for this time. */
const SUSPENSION_MS = 3_600_000;
/** A paid source is not asked after failures in a row. */
const FAILING = { failures: 5, openMs: 10_000, maxOpenMs: 600_000 } as const;
/** On fast chains, failures within this time count once. */
const ONE_FAILURE_MS = 1_000;

export interface SourceGuardOptions {
  readonly cost: Pick<StateCost, "spend">;
  readonly nowMs: () => number;
}

/**
 * Knows which source nodes passed a check, and which nodes and sources are not asked for some time. Those of wrong values are
 * suspended for an hour, paid sources while they keep failing. Counts the units of all.
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
  isSuspended(name: string): boolean {
    return this.#options.nowMs() < (this.#suspendedUntilMs.get(name) ?? 0);
  }

  /** Whether no node is asked for traces now. */
  get areNodesSuspended(): boolean {
    const { nodes } = this;
    return nodes.length > 0 && nodes.every((name) => this.isSuspended(name));
  }

  /** Suspends the node of a wrong write set, or its source if a proof needs no node, for an hour. A node must pass a check again. */
  suspend({ node, source }: Pick<WriteSet, "node" | "source">): void {
    const name = node ?? source;
    if (name !== undefined) {
      this.#suspendedUntilMs.set(name, this.#options.nowMs() + SUSPENSION_MS);
      this.#passed.delete(name);
    }
  }

  /** Called when values from these source nodes agreed with a node. */
  pass(sourceNodes: Iterable<string>): void {
    for (const name of sourceNodes) {
      if (!this.isSuspended(name)) {
        this.#passed.add(name);
      }
    }
  }

  /** Whether values from these source nodes may answer. */
  havePassed(sourceNodes: Iterable<string>): boolean {
    return [...sourceNodes].every((name) => this.#passed.has(name));
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
    const isSourceSuspended = this.#guard.isSuspended(kind) || (kind === "trace" && this.#guard.areNodesSuspended);
    return isSourceSuspended || !this.#failing.available;
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
