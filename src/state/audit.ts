import type { BlockId } from "../core/heads.ts";
import type { StateDifference } from "./blockQueue.ts";
import { affordable } from "./cost.ts";
import { Differences, type DifferencesOptions } from "./differences.ts";
import type { ComparedNode } from "./fetch/nodeReaders.ts";
import type { FetchedValues } from "./fetch/stateFetcher.ts";
import { isBulkReadable } from "./fetch/stateRequests.ts";
import { runSliced } from "./runSliced.ts";
import type { SourceGuard } from "./sources/sourceGuard.ts";
import { keyName, type StateKey } from "./stateKey.ts";
import { keyAt } from "./store/keyEncoder.ts";
import { readRows } from "./store/packedRows.ts";
import { RESTORED } from "./store/valueStore.ts";
import type { WriteSet } from "./writeSet.ts";

export interface AuditOptions extends Omit<DifferencesOptions, "guard" | "nowMs"> {
  readonly guard: Pick<SourceGuard, "havePassed" | "isSuspended" | "pass" | "suspend">;
  readonly nowMs?: () => number;
  readonly random?: () => number;
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
/** A check asks the source node's own origin each time that this number of checks ran. Values read from it may be wrong too. */
const OWN_TURN = 4;
/** Differences that one comparison confirms. */
const MAX_CONFIRMED = 3;
/** A node that returns nothing is not asked again in a check: the next one is. */
const MAX_NODES = 2;
/** Local answers to calls that are compared, limited to one a second. */
const SAMPLE_SHARE = 0.01;
const MIN_SAMPLE_INTERVAL_MS = 1_000;

/**
 * Compares known values with nodes. What follows if one differs is in `Differences`. Values from a node's traces, and restored ones,
 * answer once they passed a check. A check with nothing known passes.
 */
export class Audit {
  readonly #options: AuditOptions;
  readonly #nowMs: () => number;
  readonly #random: () => number;
  readonly #differences: Differences;
  /** Known answers since the last check, and keys of some of them. */
  #answers = 0;
  #answered: StateKey[] = [];
  #firstAnswerMs = 0;
  #checkedMs = Number.NEGATIVE_INFINITY;
  /** When no node responded to a check. */
  #failedMs = Number.NEGATIVE_INFINITY;
  #running: Promise<void> | undefined;
  #checks = 0;
  #sampledMs = Number.NEGATIVE_INFINITY;

  constructor(options: AuditOptions) {
    this.#options = options;
    this.#nowMs = options.nowMs ?? (() => performance.now());
    this.#random = options.random ?? Math.random;
    this.#differences = new Differences({ ...options, nowMs: this.#nowMs });
  }

  /** Called when the write set of a block is applied. Values from a node's traces wait for a check of that node. */
  onApplied(writeSet: WriteSet): void {
    const { values } = this.#options;
    this.#differences.onApplied(writeSet);
    if (!values.isChecked) {
      // A check that runs may have begun before the traces of this node.
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
    this.#differences.confirm("read", difference).catch((err: unknown) => this.#report(err));
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
    const nodes = this.#differences.comparable(this.#options.nodes());
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
    for (const [key, actual] of differing.slice(0, MAX_CONFIRMED)) {
      if (await this.#differences.confirm(kind, { key, block, known: known.get(key) ?? "", actual, node: name })) {
        return false;
      }
    }
    return true;
  }

  async #check(): Promise<void> {
    const { values, follower } = this.#options;
    const { generation } = follower;
    const sourceNodes = [...values.sourceNodes];
    const nodes = this.#nodesToAsk();
    const answered = values.isChecked ? this.#answered : this.#unchecked();
    this.#answers = 0;
    this.#answered = [];
    this.#checkedMs = this.#nowMs();
    const { newest } = this.#differences;
    const written = newest === undefined ? [] : await runSliced(sampleWritten(newest, this.#random));
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
      this.#pass(sourceNodes);
    } else {
      this.#failedMs = this.#nowMs();
    }
  }

  /** Returns keys of values that have answered nothing yet. Of restored ones, no use is known. */
  #unchecked(): readonly StateKey[] {
    const { values } = this.#options;
    const restored = values.sourceNodes.has(RESTORED) ? values.sample(HALF, this.#random) : [];
    return [...values.used.sample(HALF, this.#random), ...restored];
  }

  #pass(sourceNodes: readonly string[]): void {
    const { chain, values, guard, telemetry } = this.#options;
    guard.pass(sourceNodes.filter((name) => name !== RESTORED));
    // The values of a suspended node passed too. The node itself must pass again.
    for (const name of sourceNodes.filter((each) => each === RESTORED || guard.isSuspended(each))) {
      values.sourceNodes.delete(name);
    }
    values.isChecked = guard.havePassed(values.sourceNodes);
    telemetry.metrics.stateUnchecked.set({ chain }, values.isChecked ? 0 : 1);
  }

  /** Returns nodes of other origins than that of the source node first. They take turns. */
  #nodesToAsk(): readonly ComparedNode[] {
    const { values } = this.#options;
    const all = this.#options.nodes();
    const nodes = this.#differences.comparable(all);
    const own = all.find(({ name }) => name === this.#differences.newest?.node)?.origin;
    const others = [...new Set(nodes.map(({ origin }) => origin))].filter((origin) => origin !== own);
    const check = this.#checks++;
    const first = (check - Math.floor(check / OWN_TURN)) % others.length;
    const turned = [...others.slice(first), ...others.slice(0, first)];
    // A node's reads are no evidence for its own traces if another origin can be asked.
    const isOwnTurn = values.isChecked && check % OWN_TURN === OWN_TURN - 1;
    const origins = own === undefined ? turned : isOwnTurn ? [own, ...turned] : [...turned, own];
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
