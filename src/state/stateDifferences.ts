import type { BlockId } from "../core/heads.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";
import type { Judgement, OriginComparison, StateDifference, Statement, WrongValueCause } from "./originComparison.ts";
import type { SourceTrust } from "./sourceTrust.ts";
import type { StateFollower } from "./stateFollower.ts";
import type { ValueProvenance, ValueStore } from "./store/valueStore.ts";

export interface StateDifferencesOptions {
  readonly chain: string;
  readonly comparison: Pick<OriginComparison, "hasSeveral" | "ask" | "judge">;
  readonly trust: Pick<SourceTrust, "suspendLastUsed" | "suspendNode">;
  readonly values: Pick<ValueStore, "sourceOf" | "hasProof" | "contest" | "settle" | "addProven"> & {
    readonly givers: Pick<ValueStore["givers"], "carriersOf">;
  };
  readonly follower: Pick<StateFollower, "forget" | "forgetNode" | "endAnswers" | "epoch">;
  /** Undefined without a data folder. */
  readonly snapshot?: { readonly isWatched: boolean; discard(): void; replace(): void } | undefined;
  readonly telemetry: Pick<Telemetry, "log" | "metrics">;
  /** Suspends a node whose value two other origins contradict. */
  recordWrongValue(node: string): void;
  /** Called when values are no longer known, although not all values were dropped. */
}

type DifferenceKind = "audit" | "sample" | "read";

/** Values that are judged at the same time. Each asks a node of every origin. */
const MAX_JUDGED = 16;

interface FoundDifference extends StateDifference {
  readonly kind: DifferenceKind;
  /** Whether the known value follows by hashes from the header of the block. */
  readonly isProven: boolean;
  /** The giver of the known value. */
  readonly source: ValueProvenance | undefined;
  /** The nodes on whose word alone the write sets are that carried the known value. */
  readonly carriers: readonly string[];
  /** Of the follower. */
  readonly epoch: number;
}

/**
 * Reacts to known values that differ from those of a node. Other origins decide which of the two is wrong. A proven value is counted
 * before: either the node is wrong, or forebay is. A chain with one origin drops all values, and suspends the source of its newest
 * write set.
 */
export class StateDifferences {
  readonly #options: StateDifferencesOptions;
  #judged = 0;

  constructor(options: StateDifferencesOptions) {
    this.#options = options;
  }

  /** Handles a difference. Until it is judged, the value is neither known nor learned. */
  handle(difference: StateDifference, kind: DifferenceKind): void {
    const { comparison, values, follower, snapshot, chain, telemetry } = this.#options;
    const { key, block } = difference;
    const source = values.sourceOf(key, block);
    const isProven = values.hasProof(key, block);
    const carriers = this.#carriersOf(source, block);
    const found = { ...difference, kind, isProven, source, carriers, epoch: follower.epoch };
    if (isProven) {
      telemetry.metrics.stateDifferences.inc({ chain, kind, proof: "proven" });
      telemetry.log.error({ ...this.#describe(found), kind }, "a node's value differs from a proven one");
    }
    if (snapshot?.isWatched === true) {
      snapshot.discard();
      // Nobody knows what changed the snapshot, so that no node is blamed.
      this.#report(
        found,
        "a value differs from the node's after known state was restored: all values and the snapshot are dropped",
      );
      follower.forget("difference");
      return;
    }
    if (!comparison.hasSeveral) {
      this.#dropAll(found);
      return;
    }
    void this.#judge(found).catch((err: unknown) =>
      telemetry.log.error({ err, chain }, "a difference of a known value was not judged"),
    );
  }

  async #judge(found: FoundDifference): Promise<void> {
    const { comparison, values } = this.#options;
    const { key, block, source, actual, isActualProven } = found;
    const proof: { value?: string | undefined } = {};
    const proven = new Promise<void>((resolve) => {
      values.contest(key, block, (value) => {
        proof.value = value;
        resolve();
      });
    });
    if (isActualProven === true) {
      values.addProven(key, block, actual);
    }
    if (this.#judged === MAX_JUDGED) {
      values.settle(key);
      return;
    }
    this.#judged++;
    const asked = comparison.ask(found, source);
    const judge = async () => comparison.judge(await asked, proof.value);
    const judgement = await judge().finally(() => this.#judged--);
    if (judgement.kind !== "undecided") {
      values.settle(key);
      this.#apply(found, judgement);
      return;
    }
    this.#reportUndecided(found, (await asked).statements);
    await proven;
    if (proof.value !== undefined) {
      this.#apply(found, await judge());
    }
  }

  /** Returns the nodes whose traces can have made a value wrong: that which wrote it, or those since a node returned it. */
  #carriersOf(source: ValueProvenance | undefined, block: BlockId): readonly string[] {
    const from = source?.from?.number;
    if (from === undefined) {
      return [];
    }
    const { givers } = this.#options.values;
    return source?.kind === "written" ? givers.carriersOf(from - 1n, from) : givers.carriersOf(from, block.number);
  }

  #apply(found: FoundDifference, judgement: Judgement): void {
    if (!("refuted" in judgement)) {
      this.#dropAll(found);
      return;
    }
    for (const statement of judgement.refuted) {
      this.#blame(found, statement);
    }
    if (judgement.kind === "wrong") {
      this.#endWrongValue(found, judgement.cause);
    }
  }

  /** The key stays contested: for some time, its value becomes known by a proof alone. */
  #reportUndecided(found: FoundDifference, statements: readonly Statement[]): void {
    const { chain, follower, telemetry } = this.#options;
    follower.endAnswers();
    telemetry.metrics.stateDisagreements.inc({ chain });
    telemetry.log.error({ ...this.#describe(found), statements }, "nodes disagree on a state value");
  }

  /** A node that gave a wrong value may have given others, and traces without some writes. */
  #blame(found: FoundDifference, { node, origin, value }: Statement): void {
    const { trust, follower, telemetry, recordWrongValue } = this.#options;
    telemetry.log.error({ ...this.#describe(found), node, origin, value }, "a node's state value is wrong");
    recordWrongValue(node);
    trust.suspendNode(node);
    follower.forgetNode(node);
    this.#options.snapshot?.replace();
  }

  #endWrongValue(found: FoundDifference, cause: WrongValueCause): void {
    const { trust, follower } = this.#options;
    const { source, carriers, epoch } = found;
    const giver = source?.node;
    const fields = { cause, giver, carriers };
    this.#report(found, "a known state value was wrong: other origins have another one", fields);
    if (cause === "node" && giver !== undefined) {
      follower.forgetNode(giver);
      return;
    }
    for (const node of cause === "writeSets" ? carriers : []) {
      trust.suspendNode(node);
    }
    // All values may have been dropped since.
    if (epoch === follower.epoch) {
      if (cause === "unknown" || (cause === "writeSets" && carriers.length === 0)) {
        trust.suspendLastUsed();
      }
      follower.forget("difference");
    }
    this.#options.snapshot?.replace();
  }

  #dropAll(found: FoundDifference): void {
    const { trust, follower } = this.#options;
    const source = trust.suspendLastUsed();
    const text = "a known state value differs from the node's: all values are dropped, and their source is suspended";
    this.#report(found, text, { source });
    follower.forget("difference");
    this.#options.snapshot?.replace();
  }

  /** Counts and logs a known value that is wrong. A proven one is counted already. */
  #report(found: FoundDifference, text: string, fields: object = {}): void {
    const { chain, telemetry } = this.#options;
    const { kind, isProven } = found;
    if (!isProven) {
      telemetry.metrics.stateDifferences.inc({ chain, kind, proof: "none" });
    }
    telemetry.log.error({ ...this.#describe(found), kind, ...fields }, text);
  }

  #describe({ key, block, known, actual, node }: StateDifference) {
    const { number, hash } = block;
    return { chain: this.#options.chain, ...key, number: number.toString(), hash, known, actual, askedNode: node };
  }
}
