import type { BlockId } from "../core/heads.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";
import type { StateDifference } from "./blockQueue.ts";
import type { StateCost } from "./cost.ts";
import type { ComparedNode } from "./fetch/nodeReaders.ts";
import type { SourceGuard } from "./sources/sourceGuard.ts";
import type { StateFollower } from "./stateFollower.ts";
import type { StateKey } from "./stateKey.ts";
import { RESTORED, type ValueOrigin, type ValueStore } from "./store/valueStore.ts";
import type { WriteSet } from "./writeSet.ts";

/** What found a difference. The label value of a metric. */
type DifferenceKind = "check" | "sample" | "read";

export interface DifferencesOptions {
  readonly chain: string;
  readonly values: ValueStore;
  readonly follower: Pick<StateFollower, "forget" | "generation">;
  readonly guard: Pick<SourceGuard, "suspend">;
  readonly cost: Pick<StateCost, "spend">;
  /** The nodes that can be asked now, best first. */
  readonly nodes: () => readonly ComparedNode[];
  readonly telemetry: Pick<Telemetry, "log" | "metrics">;
  readonly nowMs: () => number;
  /** Prefers other nodes for a time: the value of this one is wrong. */
  recordWrongValue(node: string): void;
}

/** Origins that can outvote a node. */
const MIN_ORIGINS = 3;
/** After two disagreements within the first time, an origin that contradicts the source node is not asked for the second time. */
const DISAGREEMENT_MS = 600_000;
const AVOIDED_MS = 3_600_000;

/** The value of each node that answered. */
type Statements = ReadonlyMap<ComparedNode, string>;

interface Compared {
  /** The node whose value differs. */
  readonly checked: ComparedNode;
  /** The node of the newest write set. If it has none: one of another origin. */
  readonly source: ComparedNode | undefined;
  readonly statements: Statements;
}

/** Confirms differences of known values, and decides which value is wrong and what follows. Nothing else does. */
export class Differences {
  readonly #options: DifferencesOptions;
  #newest: WriteSet | undefined;
  /** The first block since which all write sets are from the source of the newest one. */
  #sourceSince = 0n;
  #isConfirming = false;
  #disagreedMs = Number.NEGATIVE_INFINITY;
  #avoided = { origin: "", untilMs: 0 };

  constructor(options: DifferencesOptions) {
    this.#options = options;
  }

  /** The newest write set that was applied. */
  get newest(): WriteSet | undefined {
    return this.#newest;
  }

  /** Called when the write set of a block is applied. */
  onApplied(writeSet: WriteSet): void {
    if (writeSet.node !== this.#newest?.node || writeSet.source !== this.#newest?.source) {
      this.#sourceSince = writeSet.block.number;
    }
    this.#newest = writeSet;
  }

  /** Leaves out the origin that contradicted the source node twice, unless there is no other one. */
  comparable(all: readonly ComparedNode[]): readonly ComparedNode[] {
    const { origin: avoided, untilMs } = this.#avoided;
    const allowed = this.#options.nowMs() < untilMs ? all.filter(({ origin }) => origin !== avoided) : all;
    return allowed.length > 0 ? allowed : all;
  }

  /**
   * Decides which of two values is wrong, and drops all values if it may be the known one. Returns whether it may be. A difference
   * is confirmed by single reads: a node may read many values wrongly, but one value correctly.
   */
  async confirm(kind: DifferenceKind, found: StateDifference): Promise<boolean> {
    if (this.#isConfirming) {
      return true;
    }
    this.#isConfirming = true;
    try {
      return await this.#confirmOne(kind, found);
    } finally {
      this.#isConfirming = false;
    }
  }

  async #confirmOne(kind: DifferenceKind, found: StateDifference): Promise<boolean> {
    const { values, follower } = this.#options;
    const { key, block, known } = found;
    const { generation } = follower;
    const newest = this.#newest;
    const origin = values.originOf(key, block);
    const grade = values.gradeOf(key, block);
    const nodes = this.#options.nodes();
    const checked = this.comparable(nodes).find(({ name }) => name === found.node);
    const isOther = (node: ComparedNode): boolean => node.origin !== checked?.origin;
    const source = newest?.node === undefined ? nodes.find(isOther) : nodes.find(({ name }) => name === newest.node);
    const statements = await this.#ask(key, block, nodesOfOrigins([checked, source ?? checked], nodes));
    const actual = checked && statements.get(checked);
    if (checked === undefined || actual === undefined || actual === known || generation !== follower.generation) {
      return false;
    }
    if (grade === "proven") {
      this.#reportProven(kind, { ...found, actual });
      return true;
    }
    const outvoted = outvotedIn(statements);
    if (outvoted !== undefined) {
      this.#suspendNode(found, outvoted.node, statements);
      if (outvoted.majority === known) {
        return false;
      }
    }
    const isSourceWrong =
      outvoted === undefined && (await this.#isSourceWrong(found, origin, { checked, source, statements }));
    if (generation === follower.generation) {
      this.#drop(kind, { ...found, actual }, isSourceWrong ? newest : undefined);
    }
    return true;
  }

  /**
   * Whether write sets must be wrong, because reads of their own source node contradict them. The node has another value now. A write
   * set has the known value, or the node had it when it became known. Otherwise a read may have been wrong, or earlier write sets.
   */
  async #isSourceWrong(
    { key, block, known }: StateDifference,
    origin: ValueOrigin | undefined,
    { checked, source = checked, statements }: Compared,
  ): Promise<boolean> {
    if (statements.get(source) === known) {
      this.#onDisagreement(checked.origin);
      return false;
    }
    const isWritten = origin?.isWritten === true;
    const number = origin?.from?.number ?? block.number - BigInt(this.#options.values.maxReadable);
    if (number < this.#sourceSince - (isWritten ? 0n : 1n)) {
      return false;
    }
    if (isWritten || origin?.from === undefined) {
      return isWritten;
    }
    const earlier = await this.#ask(key, origin.from, [source]);
    return earlier.get(source) === known;
  }

  async #ask(key: StateKey, block: BlockId, nodes: readonly ComparedNode[]): Promise<Statements> {
    const { cost } = this.#options;
    const statements = new Map<ComparedNode, string>();
    await Promise.all(
      nodes.map(async (node) => {
        const { values } = await node.reader.readSingly([key], block, (units) => cost.spend("check", units));
        const value = values.get(key);
        if (value !== undefined) {
          statements.set(node, value);
        }
      }),
    );
    return statements;
  }

  /** No third origin decides between the two. If that happens again, this one is not asked for a time. */
  #onDisagreement(origin: string): void {
    const { chain, telemetry } = this.#options;
    telemetry.metrics.stateDisagreements.inc({ chain });
    const nowMs = this.#options.nowMs();
    if (nowMs - this.#disagreedMs < DISAGREEMENT_MS) {
      this.#avoided = { origin, untilMs: nowMs + AVOIDED_MS };
    }
    this.#disagreedMs = nowMs;
  }

  /** A node whose read is wrong may give traces without some writes. */
  #suspendNode(found: StateDifference, { name }: ComparedNode, statements: Statements): void {
    const { guard, telemetry, recordWrongValue } = this.#options;
    const said = [...statements].map(([node, value]) => ({ node: node.name, value }));
    telemetry.log.error({ ...this.#describe(found), node: name, said }, "a node's state value is wrong");
    recordWrongValue(name);
    guard.suspend({ node: name });
  }

  /** A proven value needs no other node: the node is wrong, or forebay is. */
  #reportProven(kind: DifferenceKind, found: StateDifference): void {
    const { chain, telemetry, recordWrongValue } = this.#options;
    telemetry.metrics.stateDifferences.inc({ chain, kind, proof: "proven" });
    telemetry.log.error({ ...this.#describe(found), kind }, "a node's value differs from a proven one");
    if (found.node !== undefined) {
      recordWrongValue(found.node);
    }
  }

  #drop(kind: DifferenceKind, found: StateDifference, wrong: WriteSet | undefined): void {
    const { chain, values, follower, guard, telemetry } = this.#options;
    // What changed restored values is not known.
    const suspended = wrong?.grade === "proven" || values.sourceNodes.has(RESTORED) ? undefined : wrong;
    if (suspended !== undefined) {
      guard.suspend(suspended);
    }
    telemetry.metrics.stateDifferences.inc({ chain, kind, proof: "none" });
    telemetry.log.error(
      { ...this.#describe(found), kind, suspended: suspended?.node ?? suspended?.source },
      "a known state value differs from a node's: all known state is dropped",
    );
    follower.forget("difference");
  }

  #describe({ key, block, known, actual, node }: StateDifference) {
    const { number, hash } = block;
    return { chain: this.#options.chain, ...key, number: number.toString(), hash, known, actual, askedNode: node };
  }
}

/** Returns these nodes. With enough origins to outvote one, also a node of each other origin. */
const nodesOfOrigins = (
  wanted: readonly (ComparedNode | undefined)[],
  nodes: readonly ComparedNode[],
): readonly ComparedNode[] => {
  const chosen = new Set(wanted.filter((node) => node !== undefined));
  if (new Set(nodes.map(({ origin }) => origin)).size >= MIN_ORIGINS) {
    for (const node of nodes) {
      if (![...chosen].some(({ origin }) => origin === node.origin)) {
        chosen.add(node);
      }
    }
  }
  return [...chosen];
};

/** Returns the node that is alone against at least two other origins, which have one value. */
export const outvotedIn = (
  statements: Statements,
): { readonly node: ComparedNode; readonly majority: string } | undefined => {
  const byValue = Map.groupBy(statements, ([, value]) => value);
  const [most, least] = [...byValue]
    .map(([value, stated]) => ({ value, nodes: stated.map(([node]) => node) }))
    .map((each) => ({ ...each, origins: new Set(each.nodes.map(({ origin }) => origin)).size }))
    .sort((one, other) => other.origins - one.origins);
  const [node] = least?.nodes ?? [];
  return most !== undefined && most.origins >= 2 && least?.origins === 1 && byValue.size === 2 && node !== undefined
    ? { node, majority: most.value }
    : undefined;
};
