import type { BlockId } from "../core/heads.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";
import type { Judgement, OriginComparison, StateDifference, Statement, WrongValueCause } from "./originComparison.ts";
import type { SourceTrust } from "./sourceTrust.ts";
import type { StateFollower } from "./stateFollower.ts";
import type { ValueProvenance, ValueStore } from "./store/valueStore.ts";

export interface StateDifferencesOptions {
  readonly chain: string;
  readonly comparison: Pick<OriginComparison, "hasSeveral" | "judge">;
  readonly trust: Pick<SourceTrust, "suspendLastUsed" | "suspendNode">;
  readonly values: Pick<ValueStore, "sourceOf">;
  readonly follower: Pick<
    StateFollower,
    "forget" | "forgetNode" | "contest" | "settle" | "endAnswers" | "carriersOf" | "epoch"
  >;
  /** Undefined without a data folder. */
  readonly snapshot?: { readonly isWatched: boolean; discard(): void } | undefined;
  readonly telemetry: Pick<Telemetry, "log" | "metrics">;
  /** Suspends a node whose value two other origins contradict. */
  recordWrongValue(node: string): void;
  /** Called when values are no longer known, although not all values were dropped. */
  onForgotten(): void;
}

type DifferenceKind = "audit" | "sample" | "read";

/** Values that are judged at the same time. Each asks a node of every origin. */
const MAX_JUDGED = 16;

interface JudgedDifference {
  readonly difference: StateDifference;
  readonly kind: DifferenceKind;
  /** The giver of the known value. */
  readonly source: ValueProvenance | undefined;
  /** The nodes on whose word alone the write sets are that carried the known value. */
  readonly carriers: readonly string[];
  /** Of the follower. */
  readonly epoch: number;
}

/**
 * Reacts to known values that differ from those of a node. Other origins decide which of the two is wrong.
 * A chain with one origin drops all values, and suspends the source of its newest write set.
 */
export class StateDifferences {
  readonly #options: StateDifferencesOptions;
  #judged = 0;

  constructor(options: StateDifferencesOptions) {
    this.#options = options;
  }

  /** Handles a difference. Until it is judged, the value is neither known nor learned. */
  handle(difference: StateDifference, kind: DifferenceKind): void {
    const { comparison, values, follower, snapshot } = this.#options;
    if (snapshot?.isWatched === true) {
      snapshot.discard();
      this.#dropRestored(difference, kind);
      return;
    }
    if (!comparison.hasSeveral) {
      this.#dropAll(difference, kind);
      return;
    }
    const { key, block } = difference;
    const source = values.sourceOf(key, block);
    const judged = { difference, kind, source, carriers: this.#carriersOf(source, block), epoch: follower.epoch };
    follower.contest(key, block);
    if (this.#judged === MAX_JUDGED) {
      follower.settle(key);
      return;
    }
    this.#judged++;
    void comparison
      .judge(difference, source)
      .then((judgement) => this.#apply(judged, judgement))
      .finally(() => this.#judged--)
      .catch((err: unknown) => {
        const { chain, telemetry } = this.#options;
        telemetry.log.error({ err, chain }, "a difference of a known value was not judged");
      });
  }

  /** Returns the nodes whose traces can have made a value wrong: that which wrote it, or those since a node returned it. */
  #carriersOf(source: ValueProvenance | undefined, block: BlockId): readonly string[] {
    const from = source?.from?.number;
    if (from === undefined) {
      return [];
    }
    const { follower } = this.#options;
    return source?.kind === "written" ? follower.carriersOf(from - 1n, from) : follower.carriersOf(from, block.number);
  }

  #apply(judged: JudgedDifference, judgement: Judgement): void {
    const { follower } = this.#options;
    const { difference, kind } = judged;
    if (judgement.kind === "undecided") {
      this.#reportUndecided(difference, judgement.statements);
      return;
    }
    follower.settle(difference.key);
    if (judgement.kind === "unanswered") {
      this.#dropAll(difference, kind);
      return;
    }
    for (const statement of judgement.refuted) {
      this.#blame(difference, statement);
    }
    if (judgement.kind === "wrong") {
      this.#endWrongValue(judged, judgement);
    }
  }

  /** The key stays contested: its value is known from no node for some time. */
  #reportUndecided(difference: StateDifference, statements: readonly Statement[]): void {
    const { chain, follower, telemetry, onForgotten } = this.#options;
    follower.endAnswers();
    telemetry.metrics.stateDisagreements.inc({ chain });
    telemetry.log.error({ ...this.#describe(difference), statements }, "nodes disagree on a state value");
    onForgotten();
  }

  /** A node that gave a wrong value may have given others, and traces without some writes. */
  #blame(difference: StateDifference, { node, origin, value }: Statement): void {
    const { trust, follower, telemetry, recordWrongValue, onForgotten } = this.#options;
    telemetry.log.error({ ...this.#describe(difference), node, origin, value }, "a node's state value is wrong");
    recordWrongValue(node);
    trust.suspendNode(node);
    follower.forgetNode(node);
    onForgotten();
  }

  #endWrongValue(
    { difference, kind, source, carriers, epoch }: JudgedDifference,
    { cause }: { cause: WrongValueCause },
  ) {
    const giver = source?.node;
    const { chain, trust, follower, telemetry, onForgotten } = this.#options;
    telemetry.metrics.stateDifferences.inc({ chain, kind });
    telemetry.log.error(
      { ...this.#describe(difference), kind, cause, giver, carriers },
      "a known state value was wrong: other origins have another one",
    );
    // All values may have been dropped since.
    const isStillKnown = epoch === follower.epoch;
    if (cause === "node" && giver !== undefined) {
      follower.forgetNode(giver);
      onForgotten();
      return;
    }
    for (const node of cause === "writeSets" ? carriers : []) {
      trust.suspendNode(node);
    }
    if (isStillKnown && (cause === "unknown" || (cause === "writeSets" && carriers.length === 0))) {
      trust.suspendLastUsed();
    }
    if (isStillKnown) {
      follower.forget("difference");
    }
  }

  #dropAll(difference: StateDifference, kind: DifferenceKind): void {
    const { chain, trust, follower, telemetry } = this.#options;
    const source = trust.suspendLastUsed();
    telemetry.metrics.stateDifferences.inc({ chain, kind });
    telemetry.log.error(
      { ...this.#describe(difference), kind, source },
      "a known state value differs from the node's: all values are dropped, and their source is suspended",
    );
    follower.forget("difference");
  }

  /** Nobody knows what changed the snapshot, so that no node is blamed. */
  #dropRestored(difference: StateDifference, kind: DifferenceKind): void {
    const { chain, follower, telemetry } = this.#options;
    telemetry.metrics.stateDifferences.inc({ chain, kind });
    telemetry.log.error(
      { ...this.#describe(difference), kind },
      "a value differs from the node's after known state was restored: all values and the snapshot are dropped",
    );
    follower.forget("difference");
  }

  #describe({ key, block, known, actual, node }: StateDifference) {
    const { number, hash } = block;
    return { chain: this.#options.chain, ...key, number: number.toString(), hash, known, actual, askedNode: node };
  }
}
