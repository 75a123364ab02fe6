import type { BlockId } from "../core/heads.ts";
import { timeoutSignal } from "../core/lazySignal.ts";
import { byProgress, GiverEvidence, type ProbationLimits, SUSPENSION_MS } from "./giverEvidence.ts";
import { runSliced } from "./runSliced.ts";
import type { StateCost } from "./stateCost.ts";
import { keyName } from "./stateKey.ts";
import type { TableKey } from "./store/keyEncoder.ts";
import { codeDigits, writtenValues } from "./store/writtenValues.ts";
import type { WriteSet, WriteSetFailure, WriteSetSource, WriteSetSourceKind } from "./writeSet.ts";

/** A source on probation is asked only if no other source had the write sets of this number of blocks, and of this time. */
const TRUSTED_BLOCKS = 8n;
const TRUSTED_MS = 16_000;
/** A paid source is suspended after this number of failures, one after the other, if the first one was at least this time ago. */
const MAX_FAILURES = 5;
const MIN_FAILING_MS = 5_000;
/** The first suspension after failures. Each further failure doubles it. */
const FIRST_SUSPENSION_MS = 10_000;
const MAX_FAILURE_SUSPENSION_MS = 600_000;
/** A node on probation whose write set was late or did not agree is not compared with a trusted one for this time. */
const PEER_PAUSE_MS = 60_000;
const MAX_PEER_READ_MS = 10_000;

export interface SourceTrustOptions {
  readonly cost: Pick<StateCost, "spend">;
  readonly nowMs: () => number;
  readonly probation: ProbationLimits;
  /** The names of the nodes of the chain. */
  readonly nodes?: readonly string[];
}

/**
 * Knows how far the givers of write sets are believed. Only a write set on the word of a node needs evidence: nothing in a block
 * proves a trace. Suspends the givers of wrong values, and paid sources that keep failing.
 */
export class SourceTrust {
  readonly #options: SourceTrustOptions;
  /** For the traces of each node. */
  readonly #nodes = new Map<string, GiverEvidence>();
  /** The giver of the newest write set. */
  #lastUsed: { readonly source: GuardedSource; readonly node: string | undefined } | undefined;
  #newestTrusted: { readonly number: bigint; readonly atMs: number } | undefined;

  constructor(options: SourceTrustOptions) {
    this.#options = options;
    for (const node of options.nodes ?? []) {
      this.evidenceOf(node);
    }
  }

  /** Returns a source that has no write sets while it is suspended. Its units are counted. */
  guard(source: WriteSetSource): WriteSetSource {
    const { cost, nowMs } = this.#options;
    const guarded: GuardedSource = new GuardedSource(source, {
      ...{ cost, nowMs, evidences: this.#nodes, trust: this },
      onUsed: (node) => {
        this.#lastUsed = { source: guarded, node };
      },
    });
    return guarded;
  }

  /** Returns the evidence for a node's traces. */
  evidenceOf(node: string): GiverEvidence {
    const { probation, nowMs } = this.#options;
    const evidence = this.#nodes.get(node) ?? new GiverEvidence(probation, nowMs);
    this.#nodes.set(node, evidence);
    return evidence;
  }

  /** Whether values may answer reads that were carried on the word of these nodes. `undefined` is a source that needs no trust. */
  areTrusted(nodes: Iterable<string | undefined>): boolean {
    return [...nodes].every((node) => node === undefined || this.evidenceOf(node).isTrusted);
  }

  /** Whether to ask a source for the write set of this block. */
  isUsable({ isSuspended, evidence }: WriteSetSource, { number }: BlockId): boolean {
    const trusted = this.#newestTrusted;
    const isReplaced =
      trusted !== undefined &&
      (number - trusted.number <= TRUSTED_BLOCKS || this.#options.nowMs() - trusted.atMs < TRUSTED_MS);
    return isSuspended !== true && !(isReplaced && evidence?.isTrusted === false);
  }

  /** Called with the write set of a block, before it is applied. */
  noteBlock({ node, block }: WriteSet): void {
    if (this.areTrusted([node])) {
      this.#newestTrusted = { number: block.number, atMs: this.#options.nowMs() };
    }
  }

  /** Returns the nodes whose traces may be used: first the trusted ones, then those whose probation is further. */
  order<Named extends { readonly name: string }>(nodes: readonly Named[]): readonly Named[] {
    return nodes
      .filter(({ name }) => !this.evidenceOf(name).isSuspended)
      .sort((one, other) => byProgress(this.evidenceOf(one.name), this.evidenceOf(other.name)));
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

  /** Suspends the giver of the newest write set: the traces of one node, or a source. Returns its kind. */
  suspendLastUsed(): WriteSetSourceKind | undefined {
    const { source, node } = this.#lastUsed ?? {};
    if (node !== undefined) {
      this.suspendNode(node);
    } else {
      source?.suspend(SUSPENSION_MS);
    }
    return source?.kind;
  }

  /** Suspends the traces of a node. Its probation begins again. */
  suspendNode(name: string): void {
    this.evidenceOf(name).suspend();
  }

  /** Forgets a node that is not configured any more. Another one may get its name. */
  forget(name: string): void {
    this.#nodes.delete(name);
  }
}

interface GuardedSourceOptions extends Pick<SourceTrustOptions, "nowMs" | "cost"> {
  readonly trust: Pick<SourceTrust, "areTrusted">;
  /** For the traces of each node. */
  readonly evidences: ReadonlyMap<string, GiverEvidence>;
  /** Called with the node on whose word a write set is. */
  onUsed(node: string | undefined): void;
}

class GuardedSource implements WriteSetSource {
  readonly #source: WriteSetSource;
  readonly #options: GuardedSourceOptions;
  #suspendedUntilMs = Number.NEGATIVE_INFINITY;
  /** Since the last write set. */
  #failures = { count: 0, firstMs: 0, suspensionMs: 0 };
  /** By the name of a node on probation. */
  readonly #peersPausedUntilMs = new Map<string, number>();
  #isComparing = false;

  constructor(source: WriteSetSource, options: GuardedSourceOptions) {
    this.#source = source;
    this.#options = options;
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
    const { nowMs, evidences } = this.#options;
    const areNodesSuspended = (): boolean =>
      this.kind === "trace" && evidences.size > 0 && evidences.values().every(({ isSuspended }) => isSuspended);
    return nowMs() < this.#suspendedUntilMs || areNodesSuspended();
  }

  get evidence(): GiverEvidence | undefined {
    if (this.kind !== "trace" || this.#source.isProving === true) {
      return undefined;
    }
    const [best] = [...this.#options.evidences.values()].sort(
      (one, other) => Number(one.isSuspended) - Number(other.isSuspended) || byProgress(one, other),
    );
    return best;
  }

  async read(block: BlockId, signal: AbortSignal): Promise<WriteSet | WriteSetFailure> {
    if (this.isSuspended) {
      return "unsupported";
    }
    const outcome = this.#bill(await this.#source.read(block, signal));
    if (typeof outcome !== "string") {
      const { node } = outcome;
      this.#failures = { count: 0, firstMs: 0, suspensionMs: 0 };
      this.#options.onUsed(node);
      // A proven write set is on no node's word. It also has values that no trace has.
      if (node !== undefined && this.#options.trust.areTrusted([node])) {
        void this.#comparePeer(outcome);
      }
    } else if (outcome !== "unsupported" && this.unitsPerBlock > 0 && !signal.aborted) {
      this.#onFailure(this.#options.nowMs());
    }
    return outcome;
  }

  suspend(forMs: number): void {
    this.#suspendedUntilMs = Math.max(this.#suspendedUntilMs, this.#options.nowMs() + forMs);
  }

  #onFailure(nowMs: number): void {
    const { count, firstMs, suspensionMs } = this.#failures;
    const first = count === 0 ? nowMs : firstMs;
    const isSuspended = count + 1 >= MAX_FAILURES && nowMs - first >= MIN_FAILING_MS;
    const nextMs = Math.min(Math.max(2 * suspensionMs, FIRST_SUSPENSION_MS), MAX_FAILURE_SUSPENSION_MS);
    this.#failures = { count: count + 1, firstMs: first, suspensionMs: isSuspended ? nextMs : 0 };
    this.suspend(this.#failures.suspensionMs);
  }

  /**
   * Asks the node whose probation is furthest for the block of a trusted write set, unless another one is being asked. So nodes
   * earn the trust in their traces while a trusted one has the write sets. Never rejects.
   */
  async #comparePeer(trusted: WriteSet): Promise<void> {
    const { nowMs, evidences } = this.#options;
    const [peer] = [...evidences]
      .filter(([name, { isTrusted, isSuspended }]) => {
        const isPaused = nowMs() < (this.#peersPausedUntilMs.get(name) ?? 0);
        return !isTrusted && !isSuspended && !isPaused;
      })
      .sort(([, one], [, other]) => byProgress(one, other));
    if (peer === undefined || this.#isComparing) {
      return;
    }
    const [name, evidence] = peer;
    this.#isComparing = true;
    const agrees = await this.#agrees(name, evidence, trusted).catch(() => false);
    this.#isComparing = false;
    if (!agrees) {
      this.#peersPausedUntilMs.set(name, nowMs() + PEER_PAUSE_MS);
    }
  }

  /** The values of a node count if it has all values of the trusted write set. */
  async #agrees(name: string, evidence: GiverEvidence, trusted: WriteSet): Promise<boolean> {
    const { block } = trusted;
    const expected = await runSliced(valuesOf(trusted));
    // Nothing could agree, and a read costs units.
    if (expected.size === 0) {
      return true;
    }
    const signal = timeoutSignal(MAX_PEER_READ_MS);
    const read = this.#bill((await this.#source.readFrom?.(name, block, signal)) ?? "unsupported");
    if (typeof read === "string" || read.node !== name || read.block.hash !== block.hash) {
      return false;
    }
    const values = await runSliced(valuesOf(read));
    if ([...expected].some(([key, { value }]) => values.get(key)?.value !== value)) {
      return false;
    }
    for (const { key } of expected.values()) {
      if (key.field !== "storage") {
        evidence.recordAgreement({ ...key, field: key.field }, block);
      }
    }
    return true;
  }

  /** A read that fails costs as much as one that succeeds, unless no node supports the source. Another replica may have paid. */
  #bill(outcome: WriteSet | WriteSetFailure): WriteSet | WriteSetFailure {
    if (outcome !== "unsupported" && (typeof outcome === "string" || outcome.isShared !== true)) {
      this.#options.cost.spend("writeSets", this.unitsPerBlock);
    }
    return outcome;
  }
}

/** Returns the values that a write set names, by key. Yields after each. */
const valuesOf = function* (writeSet: WriteSet): Generator<void, Map<string, { key: TableKey; value: string }>> {
  const values = new Map<string, { key: TableKey; value: string }>();
  for (const { key, value } of writtenValues(writeSet, codeDigits)) {
    if (value !== undefined) {
      values.set(keyName(key), { key, value });
    }
    yield;
  }
  return values;
};
