import type { BlockId } from "../core/heads.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";
import type { StateDifference } from "./blockQueue.ts";
import { affordable, type StateCost } from "./cost.ts";
import type { ComparedNode } from "./fetch/nodeReaders.ts";
import type { FetchedValues } from "./fetch/stateFetcher.ts";
import { isBulkReadable } from "./fetch/stateRequests.ts";
import { runSliced } from "./runSliced.ts";
import type { SourceGuard } from "./sources/sourceGuard.ts";
import type { StateFollower } from "./stateFollower.ts";
import { keyName, type StateKey } from "./stateKey.ts";
import { keyAt } from "./store/keyEncoder.ts";
import { readRows } from "./store/packedRows.ts";
import { RESTORED, type ValueOrigin, type ValueStore } from "./store/valueStore.ts";
import type { WriteSet } from "./writeSet.ts";

/** What found a difference. The label value of a metric. */
type DifferenceKind = "check" | "sample" | "read";

export interface AuditOptions {
  readonly chain: string;
  readonly values: ValueStore;
  readonly follower: Pick<StateFollower, "forget" | "generation">;
  readonly guard: Pick<SourceGuard, "havePassed" | "isSuspended" | "pass" | "suspend">;
  readonly cost: Pick<StateCost, "spend">;
  /** The nodes that can be asked now, best first. */
  readonly nodes: () => readonly ComparedNode[];
  readonly telemetry: Pick<Telemetry, "log" | "metrics">;
  readonly nowMs?: () => number;
  readonly random?: () => number;
  /** Prefers other nodes for a time: the value of this one is wrong. */
  recordWrongValue(node: string): void;
}

/** A check comes after this number of known answers, or this time after the first of them, but not sooner than MIN_INTERVAL_MS. */
const MIN_ANSWERS = 100;
const MAX_WAIT_MS = 60_000;
const MIN_INTERVAL_MS = 2_000;
/** Half of them were just written, half have answered since the last check. One eth_call reads all. */
const MAX_KEYS = 200;
const HALF = MAX_KEYS / 2;
/** Keys that need a call of their own. */
const MAX_SINGLE_KEYS = 1;
const MAX_UNITS = 100;
/** A check asks the giver's own origin each time that this number of checks ran. Values that it gave may be wrong too. */
const OWN_TURN = 4;
/** Differences that one comparison confirms. */
const MAX_JUDGED = 3;
/** A node that returns nothing is not asked again in a check: the next one is. */
const MAX_NODES = 2;
/** Local answers to calls that are compared, limited to one a second. */
const SAMPLE_SHARE = 0.01;
const MIN_SAMPLE_INTERVAL_MS = 1_000;
/** Origins that can outvote a node. */
const MIN_ORIGINS = 3;
/** After two disagreements within the first time, an origin that contradicts the giver is not asked for the second time. */
const DISAGREEMENT_MS = 600_000;
const AVOIDED_MS = 3_600_000;

/** The value of each node that answered. */
type Statements = ReadonlyMap<ComparedNode, string>;

interface Witnesses {
  /** The node whose value differs. */
  readonly asked: ComparedNode;
  /** The node that gave the newest write set. If no node did: one of another origin. */
  readonly witness: ComparedNode | undefined;
  readonly statements: Statements;
}

/**
 * Compares known values with nodes, and decides what follows if one differs. Nothing else judges values. Values that a node's traces
 * carried, and restored ones, answer once they passed a check. A check with nothing known passes.
 */
export class Audit {
  readonly #options: AuditOptions;
  readonly #nowMs: () => number;
  readonly #random: () => number;
  #newest: WriteSet | undefined;
  /** The first block since which all write sets are of the giver of the newest one. */
  #givesSince = 0n;
  /** Known answers since the last check, and keys of some of them. */
  #answers = 0;
  #answered: StateKey[] = [];
  #firstAnswerMs = 0;
  #checkedMs = Number.NEGATIVE_INFINITY;
  /** When no node responded to a check. */
  #failedMs = Number.NEGATIVE_INFINITY;
  #running: Promise<void> | undefined;
  #checks = 0;
  #isJudging = false;
  #disagreedMs = Number.NEGATIVE_INFINITY;
  #avoided = { origin: "", untilMs: 0 };
  #sampledMs = Number.NEGATIVE_INFINITY;

  constructor(options: AuditOptions) {
    this.#options = options;
    this.#nowMs = options.nowMs ?? (() => performance.now());
    this.#random = options.random ?? Math.random;
  }

  /** Called when the write set of a block is applied. Values on a giver's word alone wait for a check. */
  onApplied(writeSet: WriteSet): void {
    const { values } = this.#options;
    if (writeSet.node !== this.#newest?.node || writeSet.source !== this.#newest?.source) {
      this.#givesSince = writeSet.block.number;
    }
    this.#newest = writeSet;
    if (!values.isChecked) {
      // A check that runs may have begun before this giver.
      void Promise.resolve(this.#running).then(() => this.#checkNew());
    } else if (this.#answers > 0 && this.#nowMs() - this.#firstAnswerMs >= MAX_WAIT_MS) {
      void this.check();
    }
  }

  #checkNew(): Promise<void> | undefined {
    const mayCheck = this.#nowMs() - this.#failedMs >= MIN_INTERVAL_MS;
    return this.#options.values.isChecked || !mayCheck ? undefined : this.check();
  }

  /** Called with the key of an answer that needed no node, of a call with one that it read. Proven ones need no check. */
  onLocalRead(key: StateKey): void {
    if (this.#answers === 0) {
      this.#firstAnswerMs = this.#nowMs();
    }
    this.#answers++;
    const place = this.#answers <= HALF ? this.#answers - 1 : Math.floor(this.#random() * this.#answers);
    if (place < HALF) {
      this.#answered[place] = key;
    }
    if (this.#answers >= MIN_ANSWERS && this.#nowMs() - this.#checkedMs >= MIN_INTERVAL_MS) {
      void this.check();
    }
  }

  /** Called if a node returned another value to a client than the known one. */
  onRead(difference: StateDifference): void {
    this.#judge("read", difference).catch((err: unknown) => this.#report(err));
  }

  /** Called with each local answer to a call. Returns whether to compare it with a node. */
  takeSample(): boolean {
    const nowMs = this.#nowMs();
    if (this.#random() >= SAMPLE_SHARE || nowMs - this.#sampledMs < MIN_SAMPLE_INTERVAL_MS) {
      return false;
    }
    this.#sampledMs = nowMs;
    return true;
  }

  /** Returns the best node that is not of the origin of this one. If there is none: the best node. */
  nodeBeside(name: string | undefined): ComparedNode | undefined {
    const nodes = this.#allowed(this.#options.nodes());
    const origin = nodes.find((node) => node.name === name)?.origin;
    return nodes.find((node) => node.origin !== origin) ?? nodes[0];
  }

  /** Checks known values at the newest block, unless a check is running, or values are being restored. Never rejects. */
  check(): Promise<void> {
    if (this.#options.values.isRestoring) {
      return Promise.resolve();
    }
    this.#running ??= this.#check()
      .catch((err: unknown) => this.#report(err))
      .finally(() => {
        this.#running = undefined;
      });
    return this.#running;
  }

  /**
   * Compares known values with a node at the hash of a block. Returns whether at least one was compared, and none of them is wrong.
   * Many are read in bulk.
   */
  async compare(
    kind: "check" | "sample",
    { name, reader }: ComparedNode,
    known: FetchedValues["values"],
    block: BlockId,
  ): Promise<boolean> {
    const { chain, cost, telemetry } = this.#options;
    const onSpent = (units: number) => cost.spend(kind, units);
    const keys = [...known.keys()];
    const read = await (keys.length === 1
      ? reader.readSingly(keys, block, onSpent)
      : reader.read(keys, block, onSpent));
    if (read.values.size === 0) {
      return false;
    }
    telemetry.metrics.stateCompared.inc({ chain, kind }, read.values.size);
    const differing = [...read.values].filter(([key, actual]) => known.get(key) !== actual);
    for (const [key, actual] of differing.slice(0, MAX_JUDGED)) {
      if (await this.#judge(kind, { key, block, known: known.get(key) ?? "", actual, node: name })) {
        return false;
      }
    }
    return true;
  }

  async #check(): Promise<void> {
    const { values, follower } = this.#options;
    const { generation } = follower;
    const carriers = [...values.carriers];
    const nodes = this.#nodesToAsk();
    const answered = values.isChecked ? this.#answered : this.#unchecked();
    this.#answers = 0;
    this.#answered = [];
    this.#checkedMs = this.#nowMs();
    const written = this.#newest === undefined ? [] : await runSliced(sampleWritten(this.#newest, this.#random));
    const block = values.head;
    if (block === undefined || generation !== follower.generation) {
      return;
    }
    let hasPassed = false;
    for (const node of nodes.slice(0, MAX_NODES)) {
      const known = this.#choose([...answered, ...written], block, node.reader);
      hasPassed ||= known.size === 0 || (await this.compare("check", node, known, block));
      if (generation !== follower.generation) {
        return;
      }
    }
    if (hasPassed) {
      this.#pass(carriers);
    } else {
      this.#failedMs = this.#nowMs();
    }
  }

  /** Returns keys of values that have answered nothing yet. Of restored ones, no use is known. */
  #unchecked(): readonly StateKey[] {
    const { values } = this.#options;
    const restored = values.carriers.has(RESTORED) ? values.sample(HALF, this.#random) : [];
    return [...values.used.sample(HALF, this.#random), ...restored];
  }

  #pass(carriers: readonly string[]): void {
    const { chain, values, guard, telemetry } = this.#options;
    guard.pass(carriers.filter((carrier) => carrier !== RESTORED));
    // What a suspended node carried passed too. The node itself must pass again.
    for (const carrier of carriers.filter((each) => each === RESTORED || guard.isSuspended(each))) {
      values.carriers.delete(carrier);
    }
    values.isChecked = guard.havePassed(values.carriers);
    telemetry.metrics.stateUnchecked.set({ chain }, values.isChecked ? 0 : 1);
  }

  /** Leaves out the origin that contradicted the giver twice, unless there is no other one. */
  #allowed(all: readonly ComparedNode[]): readonly ComparedNode[] {
    const { origin: avoided, untilMs } = this.#avoided;
    const allowed = this.#nowMs() < untilMs ? all.filter(({ origin }) => origin !== avoided) : all;
    return allowed.length > 0 ? allowed : all;
  }

  /** Returns nodes of other origins than that of the newest giver first. They take turns. */
  #nodesToAsk(): readonly ComparedNode[] {
    const { values } = this.#options;
    const all = this.#options.nodes();
    const nodes = this.#allowed(all);
    const giver = all.find(({ name }) => name === this.#newest?.node)?.origin;
    const others = [...new Set(nodes.map(({ origin }) => origin))].filter((origin) => origin !== giver);
    const check = this.#checks++;
    const first = (check - Math.floor(check / OWN_TURN)) % others.length;
    const turned = [...others.slice(first), ...others.slice(0, first)];
    // A giver's own word is no reason to believe it, if there is another one.
    const isOwnTurn = values.isChecked && check % OWN_TURN === OWN_TURN - 1;
    const origins = giver === undefined ? turned : isOwnTurn ? [giver, ...turned] : [...turned, giver];
    return origins.flatMap((origin) => nodes.find((node) => node.origin === origin) ?? []);
  }

  /** Returns known values without a proof among these, as many as a check may read. */
  #choose(keys: readonly StateKey[], block: BlockId, reader: ComparedNode["reader"]): FetchedValues["values"] {
    const { values } = this.#options;
    const chosen = new Map<string, StateKey>();
    let singles = 0;
    for (const key of keys) {
      const name = keyName(key);
      const isSingle = key.field === "nonce" || !isBulkReadable(key);
      const isLeftOut =
        chosen.has(name) || (isSingle && singles === MAX_SINGLE_KEYS) || values.gradeOf(key, block) === "proven";
      if (!isLeftOut && values.getUnchecked(key, block) !== undefined) {
        singles += isSingle ? 1 : 0;
        chosen.set(name, key);
      }
    }
    const shuffled = [...chosen.values()].sort(() => this.#random() - 0.5);
    const unitsFor = (some: readonly StateKey[]) => reader.unitsFor(some, block);
    // A check that reads nothing would pass.
    const affordableKeys = affordable(shuffled, unitsFor, Math.max(MAX_UNITS, unitsFor(shuffled.slice(0, 1))));
    return new Map(affordableKeys.map((key) => [key, values.getUnchecked(key, block) ?? ""]));
  }

  /**
   * Decides which of two values is wrong, and drops all values if it may be the known one. Returns whether it may be. A difference
   * is confirmed by single reads: a node may read many values wrongly, but one value correctly.
   */
  async #judge(kind: DifferenceKind, found: StateDifference): Promise<boolean> {
    if (this.#isJudging) {
      return true;
    }
    this.#isJudging = true;
    try {
      return await this.#judgeOne(kind, found);
    } finally {
      this.#isJudging = false;
    }
  }

  async #judgeOne(kind: DifferenceKind, found: StateDifference): Promise<boolean> {
    const { values, follower } = this.#options;
    const { key, block, known } = found;
    const { generation } = follower;
    const giver = this.#newest;
    const origin = values.originOf(key, block);
    const grade = values.gradeOf(key, block);
    const nodes = this.#options.nodes();
    const asked = this.#allowed(nodes).find(({ name }) => name === found.node);
    const isOther = (node: ComparedNode): boolean => node.origin !== asked?.origin;
    const witness = giver?.node === undefined ? nodes.find(isOther) : nodes.find(({ name }) => name === giver.node);
    const statements = await this.#ask(key, block, nodesOfOrigins([asked, witness ?? asked], nodes));
    const actual = asked && statements.get(asked);
    if (asked === undefined || actual === undefined || actual === known || generation !== follower.generation) {
      return false;
    }
    if (grade === "proven") {
      this.#reportProven(kind, { ...found, actual });
      return true;
    }
    const outvoted = outvotedIn(statements);
    if (outvoted !== undefined) {
      this.#endNode(found, outvoted.node, statements);
      if (outvoted.majority === known) {
        return false;
      }
    }
    const isGiverWrong =
      outvoted === undefined && (await this.#isGiverWrong(found, origin, { asked, witness, statements }));
    if (generation === follower.generation) {
      this.#drop(kind, { ...found, actual }, isGiverWrong ? giver : undefined);
    }
    return true;
  }

  /**
   * Whether write sets must be wrong, by the word of their giver's own node. It contradicts the value now. A write set has the value,
   * or the value was right when it became known. Otherwise a read may have been wrong, or the write sets of another giver.
   */
  async #isGiverWrong(
    { key, block, known }: StateDifference,
    origin: ValueOrigin | undefined,
    { asked, witness = asked, statements }: Witnesses,
  ): Promise<boolean> {
    if (statements.get(witness) === known) {
      this.#onDisagreement(asked.origin);
      return false;
    }
    const isWritten = origin?.isWritten === true;
    const number = origin?.from?.number ?? block.number - BigInt(this.#options.values.maxReadable);
    if (number < this.#givesSince - (isWritten ? 0n : 1n)) {
      return false;
    }
    if (isWritten || origin?.from === undefined) {
      return isWritten;
    }
    const earlier = await this.#ask(key, origin.from, [witness]);
    return earlier.get(witness) === known;
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

  /** The two origins have nobody who decides between them. The giver is believed if that happens again. */
  #onDisagreement(origin: string): void {
    const { chain, telemetry } = this.#options;
    telemetry.metrics.stateDisagreements.inc({ chain });
    const nowMs = this.#nowMs();
    if (nowMs - this.#disagreedMs < DISAGREEMENT_MS) {
      this.#avoided = { origin, untilMs: nowMs + AVOIDED_MS };
    }
    this.#disagreedMs = nowMs;
  }

  /** A node whose read is wrong may give traces without some writes. */
  #endNode(found: StateDifference, { name }: ComparedNode, statements: Statements): void {
    const { guard, telemetry, recordWrongValue } = this.#options;
    const said = [...statements].map(([node, value]) => ({ node: node.name, value }));
    telemetry.log.error({ ...this.#describe(found), node: name, said }, "a node's state value is wrong");
    recordWrongValue(name);
    guard.suspend({ node: name });
  }

  /** No node is needed to trust a proven value: the node is wrong, or forebay is. */
  #reportProven(kind: DifferenceKind, found: StateDifference): void {
    const { chain, telemetry, recordWrongValue } = this.#options;
    telemetry.metrics.stateDifferences.inc({ chain, kind, proof: "proven" });
    telemetry.log.error({ ...this.#describe(found), kind }, "a node's value differs from a proven one");
    if (found.node !== undefined) {
      recordWrongValue(found.node);
    }
  }

  #drop(kind: DifferenceKind, found: StateDifference, giver: WriteSet | undefined): void {
    const { chain, values, follower, guard, telemetry } = this.#options;
    // What changed restored values is not known.
    const blamed = giver?.grade === "proven" || values.carriers.has(RESTORED) ? undefined : giver;
    if (blamed !== undefined) {
      guard.suspend(blamed);
    }
    telemetry.metrics.stateDifferences.inc({ chain, kind, proof: "none" });
    telemetry.log.error(
      { ...this.#describe(found), kind, suspended: blamed?.node ?? blamed?.source },
      "a known state value differs from a node's: all known state is dropped",
    );
    follower.forget("difference");
  }

  #describe({ key, block, known, actual, node }: StateDifference) {
    const { number, hash } = block;
    return { chain: this.#options.chain, ...key, number: number.toString(), hash, known, actual, askedNode: node };
  }

  #report(err: unknown): void {
    const { chain, telemetry } = this.#options;
    telemetry.log.error({ err, chain }, "known state was not compared");
  }
}

/** Returns keys that a block wrote, at random, with a step for each write. */
const sampleWritten = function* ({ packed }: WriteSet, random: () => number): Generator<void, readonly StateKey[]> {
  const chosen: StateKey[] = [];
  let count = 0;
  for (const row of readRows(packed)) {
    const { kind } = row;
    if (kind !== "bytes" && kind !== "call" && kind !== "storage" && !row.isEnded) {
      count++;
      const place = count <= HALF ? count - 1 : Math.floor(random() * count);
      if (place < HALF) {
        chosen[place] = keyAt(kind, row.place);
      }
    }
    yield;
  }
  return chosen;
};

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
    .map(([value, said]) => ({ value, nodes: said.map(([node]) => node) }))
    .map((each) => ({ ...each, origins: new Set(each.nodes.map(({ origin }) => origin)).size }))
    .sort((one, other) => other.origins - one.origins);
  const [node] = least?.nodes ?? [];
  return most !== undefined && most.origins >= 2 && least?.origins === 1 && byValue.size === 2 && node !== undefined
    ? { node, majority: most.value }
    : undefined;
};
