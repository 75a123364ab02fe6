import assert from "node:assert/strict";
import { test } from "node:test";
import type { BlockId } from "../../src/core/heads.ts";
import { Audit } from "../../src/state/audit.ts";
import { outvotedIn } from "../../src/state/differences.ts";
import type { ComparedNode } from "../../src/state/fetch/nodeReaders.ts";
import type { StateKey } from "../../src/state/stateKey.ts";
import { packWrites } from "../../src/state/store/packedWrites.ts";
import { RESTORED, ValueStore } from "../../src/state/store/valueStore.ts";
import type { WriteSet } from "../../src/state/writeSet.ts";
import { createTelemetry } from "../../src/telemetry/telemetry.ts";
import { hashOf } from "../support/builders/heads.ts";
import { fetchedValues } from "../support/builders/nodeState.ts";
import { runAll } from "../support/builders/runAll.ts";
import { addressOf } from "../support/builders/stateModel.ts";
import { createCost, createGuard } from "./costRig.ts";

const FIRST: BlockId = { number: 7n, hash: hashOf(7) };
const SECOND: BlockId = { number: 8n, hash: hashOf(8) };
const SECOND_MS = 1_000;
const digits = (value: number): string => value.toString(16).padStart(64, "0");
const keyOf = (index: number, field: "balance" | "nonce" = "balance"): StateKey => ({
  ...{ field, address: addressOf(index), slot: undefined },
});
const settled = () => new Promise(setImmediate);

interface RigOptions {
  /** The names of nodes. Each is an origin. */
  readonly nodes?: readonly string[];
  readonly passed?: readonly string[];
  /** Units of an eth_call. */
  readonly callUnits?: number;
}

/** An audit of a store. The value of each key is 1 on all nodes, unless `lies` has another. */
const createRig = ({ nodes = ["one", "two"], passed = ["one", "two"], callUnits = 26 }: RigOptions = {}) => {
  const values = new ValueStore(1_000_000);
  values.begin(FIRST);
  const { cost, clock, total } = createCost({ used: values.used });
  const guard = createGuard(passed);
  const telemetry = createTelemetry({ level: "silent" });
  const reads: { readonly node: string; readonly keys: readonly StateKey[]; readonly isSingle: boolean }[] = [];
  const lies = new Map<string, string>();
  /** Nodes that limit the rate. */
  const refusing = new Set<string>();
  /** Accounts that a read of many values gets wrong. */
  const artefacts = new Set<string>();
  const drops: string[] = [];
  const wrongNodes: string[] = [];
  const follower = {
    generation: 0,
    forget: (reason = "") => {
      drops.push(reason);
      follower.generation++;
      values.begin(SECOND);
    },
  };
  const nodeOf = (name: string): ComparedNode => {
    const read =
      (isSingle: boolean) => async (keys: readonly StateKey[], _: BlockId, onSpent: (units: number) => void) => {
        reads.push({ node: name, keys, isSingle });
        onSpent(isSingle ? 20 * keys.length : callUnits);
        if (refusing.has(name)) {
          return fetchedValues();
        }
        const stated = ({ address }: StateKey) =>
          !isSingle && artefacts.has(address) ? digits(3) : (lies.get(name) ?? digits(1));
        return fetchedValues({ values: new Map(keys.map((key) => [key, stated(key)])) });
      };
    const unitsFor = (keys: readonly StateKey[]) =>
      callUnits + 20 * keys.filter(({ field }) => field === "nonce").length;
    return {
      ...{ name, origin: name },
      reader: { unitsFor, read: read(false), readSingly: read(true), fetch: async () => fetchedValues() },
    };
  };
  const compared = nodes.map(nodeOf);
  const audit = new Audit({
    ...{ chain: "chain", values, follower, guard, cost, telemetry },
    nodes: () => compared,
    nowMs: () => clock.nowMs,
    random: () => clock.random,
    recordWrongValue: (name) => wrongNodes.push(name),
  });
  /** Applies a write set that a node gave, or the feed. */
  const apply = (writes: readonly number[], node: string | undefined): void => {
    const balances = writes.map((index) => [addressOf(index), { balance: 1n, slots: new Map() }] as const);
    const writeSet: WriteSet = {
      ...{
        block: SECOND,
        grade: "checked",
        packed: packWrites(new Map(balances)),
        node,
        source: node === undefined ? "feed" : "trace",
      },
    };
    values.isChecked = guard.havePassed(node === undefined ? [] : [node]);
    runAll(values.apply(writeSet));
    audit.onApplied(writeSet);
  };
  const answer = (count: number, key = keyOf(0)): void => {
    for (let index = 0; index < count; index++) {
      audit.onLocalRead(key);
    }
  };
  const counts = async () => ({
    differences: (await telemetry.metrics.stateDifferences.get()).values.reduce((sum, { value }) => sum + value, 0),
    disagreements: (await telemetry.metrics.stateDisagreements.get()).values.reduce((sum, { value }) => sum + value, 0),
  });
  return {
    audit,
    values,
    guard,
    clock,
    reads,
    lies,
    artefacts,
    refusing,
    drops,
    wrongNodes,
    apply,
    answer,
    counts,
    total,
  };
};

type Rig = ReturnType<typeof createRig>;

test("a check comes after 100 answers and 2 s, or with a block a minute after the first answer", async () => {
  const rig = createRig();
  const { values, clock, reads, answer, apply } = rig;
  values.add(keyOf(0), FIRST, digits(1));
  answer(99);
  await settled();
  assert.equal(reads.length, 0);
  answer(1);
  await settled();
  assert.equal(reads.length, 1);
  answer(150);
  await settled();
  assert.equal(reads.length, 1);
  clock.nowMs += 2 * SECOND_MS;
  answer(1);
  await settled();
  assert.equal(reads.length, 2);
  clock.nowMs += 3_600 * SECOND_MS;
  apply([1], "one");
  await settled();
  assert.equal(reads.length, 2, "nothing was answered");
  answer(1);
  clock.nowMs += 60 * SECOND_MS;
  rig.audit.onApplied({ block: SECOND, grade: "checked", packed: packWrites(new Map()), node: "one" });
  await settled();
  assert.equal(reads.length, 3);
});

test("a check reads what was just written and what answered, in one call, and one nonce", async () => {
  const { values, reads, answer, apply, clock } = createRig();
  for (let index = 0; index < 300; index++) {
    values.add(keyOf(index), FIRST, digits(1));
    values.add(keyOf(index, "nonce"), FIRST, digits(1));
  }
  apply([300, 301], "one");
  for (let index = 0; index < 150; index++) {
    clock.random = index / 150;
    answer(1, keyOf(index, index % 2 === 0 ? "balance" : "nonce"));
  }
  clock.nowMs += 10 * SECOND_MS;
  answer(1);
  await settled();
  const [read] = reads.slice(-1);
  assert.equal(read?.node, "two", "another origin than that of the source node");
  const of = (index: number) => read?.keys.some(({ address }) => address === addressOf(index));
  assert.ok(of(300) && of(301));
  assert.equal(read?.keys.filter(({ field }) => field === "nonce").length, 1);
  assert.ok((read?.keys.length ?? 0) > 20 && (read?.keys.length ?? 0) <= 200);
});

test("proven values are not compared, and a check with nothing else passes", async () => {
  const { audit, values, reads, apply } = createRig({ passed: [] });
  values.add(keyOf(0), FIRST, digits(1), "proven");
  apply([], "one");
  assert.equal(values.isChecked, false);
  await audit.check();
  assert.deepEqual([reads, values.isChecked], [[], true]);
});

test("values of a new source node answer after one check, and stay unchecked while no node responds", async () => {
  const silent = createRig({ nodes: [], passed: [] });
  silent.apply([0], "one");
  await silent.audit.check();
  assert.equal(silent.values.isChecked, false);
  const { values, reads, apply, audit } = createRig({ passed: ["one"] });
  apply([0], "two");
  await audit.check();
  assert.deepEqual([values.isChecked, reads.map(({ node }) => node)], [true, ["one"]]);
});

test("restored values answer after one check, and each restart needs another one", async () => {
  const { audit, values, guard } = createRig();
  values.add(keyOf(0), FIRST, digits(1));
  values.used.record(keyOf(0), 7n);
  values.sourceNodes.add(RESTORED);
  values.isChecked = false;
  await audit.check();
  assert.deepEqual([values.isChecked, [...values.sourceNodes]], [true, []]);
  assert.equal(guard.havePassed([RESTORED]), false);
});

test("a check during the restoring lets no value answer that comes later", async () => {
  const { audit, values } = createRig();
  values.sourceNodes.add(RESTORED);
  values.isChecked = false;
  values.isRestoring = true;
  await audit.check();
  assert.equal(values.isChecked, false);
  values.isRestoring = false;
  await audit.check();
  assert.equal(values.isChecked, true);
});

test("origins take turns, and each fourth check asks the source node's own", async () => {
  const { audit, values, reads, apply } = createRig({ nodes: ["one", "two", "three"] });
  apply([0], "one");
  values.add(keyOf(0), FIRST, digits(1));
  for (let count = 0; count < 8; count++) {
    await audit.check();
  }
  assert.deepEqual(
    reads.map(({ node }) => node),
    ["two", "three", "two", "one", "three", "two", "three", "one"],
  );
});

/** Lets a check find that these nodes have another value than the known one, which was written or fetched. */
const findDifference = async (rig: Rig, liars: readonly string[], { isWritten = true } = {}) => {
  const { audit, values, lies, apply } = rig;
  values.add(keyOf(0), FIRST, digits(1));
  apply(isWritten ? [0] : [], "one");
  for (const name of liars) {
    lies.set(name, digits(2));
  }
  const [node] = liars.slice(-1);
  await audit.onRead({ key: keyOf(0), block: SECOND, known: digits(1), actual: digits(2), node });
  for (let turn = 0; turn < 10; turn++) {
    await settled();
  }
  return rig.counts();
};

test("of two origins, the source node's traces are suspended only if its own reads contradict them", async () => {
  const honest = createRig();
  assert.deepEqual(await findDifference(honest, ["two"]), { differences: 1, disagreements: 1 });
  assert.deepEqual([honest.drops, honest.guard.isSuspended("one")], [["difference"], false]);
  const lying = createRig();
  assert.deepEqual(await findDifference(lying, ["one", "two"]), { differences: 1, disagreements: 0 });
  assert.deepEqual([lying.drops, lying.guard.isSuspended("one")], [["difference"], true]);
  // A read gave the value: nobody had it when it became known.
  const buggy = createRig();
  await findDifference(buggy, ["one", "two"], { isWritten: false });
  assert.deepEqual([buggy.drops, buggy.guard.isSuspended("one")], [["difference"], false]);
});

test("of three origins, a node alone is suspended, and all ends only if the known value is wrong", async () => {
  const nodes = ["one", "two", "three"];
  const right = createRig({ nodes });
  assert.deepEqual(await findDifference(right, ["two"]), { differences: 0, disagreements: 0 });
  assert.deepEqual([right.drops, right.wrongNodes, right.guard.isSuspended("two")], [[], ["two"], true]);
  const wrong = createRig({ nodes });
  assert.deepEqual(await findDifference(wrong, ["two", "three"]), { differences: 1, disagreements: 0 });
  assert.deepEqual([wrong.drops, wrong.wrongNodes, wrong.guard.isSuspended("one")], [["difference"], ["one"], true]);
  const all = createRig({ nodes });
  await findDifference(all, nodes);
  assert.deepEqual([all.drops, all.wrongNodes, all.guard.isSuspended("one")], [["difference"], [], true]);
});

test("after two disagreements in ten minutes, checks ask the source node alone for an hour", async () => {
  const rig = createRig();
  await findDifference(rig, ["two"]);
  rig.clock.nowMs += 60 * SECOND_MS;
  rig.values.begin(FIRST);
  await findDifference(rig, ["two"]);
  const asked = async (): Promise<string | undefined> => {
    rig.values.add(keyOf(0), SECOND, digits(1));
    rig.lies.clear();
    await rig.audit.check();
    return rig.reads.at(-1)?.node;
  };
  for (let count = 0; count < 4; count++) {
    assert.equal(await asked(), "one");
  }
  rig.clock.nowMs += 3_600 * SECOND_MS;
  assert.deepEqual(new Set([await asked(), await asked()]), new Set(["two"]));
});

test("a difference that a single read does not confirm is none, and one of a proven value drops nothing", async () => {
  const rig = createRig();
  rig.values.add(keyOf(0), FIRST, digits(1));
  rig.audit.onRead({ key: keyOf(0), block: FIRST, known: digits(1), actual: digits(2), node: "one" });
  await settled();
  assert.deepEqual([rig.drops, rig.reads.every(({ isSingle }) => isSingle)], [[], true]);
  rig.values.add(keyOf(0), FIRST, digits(1), "proven");
  rig.lies.set("one", digits(2));
  rig.audit.onRead({ key: keyOf(0), block: FIRST, known: digits(1), actual: digits(2), node: "one" });
  await settled();
  assert.deepEqual([rig.drops, rig.wrongNodes, (await rig.counts()).differences], [[], ["one"], 1]);
});

test("one local answer to a call in a hundred is compared, limited to one a second", () => {
  const { audit, clock } = createRig();
  clock.random = 0.02;
  assert.equal(audit.takeSample(), false);
  clock.random = 0.005;
  assert.deepEqual([audit.takeSample(), audit.takeSample()], [true, false]);
  clock.nowMs += SECOND_MS;
  assert.equal(audit.takeSample(), true);
});

test("a node is outvoted by two other origins that agree, and by nobody if those differ", () => {
  const node = (name: string, origin = name) => ({ name, origin }) as ComparedNode;
  const outvoted = (...stated: readonly (readonly [ComparedNode, string])[]) => outvotedIn(new Map(stated))?.node.name;
  assert.equal(outvoted([node("a"), "1"], [node("b"), "2"], [node("c"), "1"]), "b");
  assert.equal(outvoted([node("a"), "1"], [node("b"), "2"]), undefined);
  assert.equal(outvoted([node("a"), "1"], [node("b"), "2"], [node("c"), "3"]), undefined);
  assert.equal(outvoted([node("a"), "1"], [node("b"), "2"], [node("c", "a"), "1"]), undefined);
  assert.equal(outvoted([node("a"), "1"], [node("b"), "2"], [node("c"), "1"], [node("d"), "2"]), undefined);
});

test("a check reads values also if one call costs more units than a check may", async () => {
  const { audit, values, reads, apply } = createRig({ callUnits: 200, passed: [] });
  apply([0, 1], "one");
  await audit.check();
  assert.deepEqual([values.isChecked, reads.length, reads[0]?.keys.length], [true, 1, 2]);
});

test("after two disagreements, a sample asks the source node too", async () => {
  const rig = createRig();
  for (let count = 0; count < 2; count++) {
    rig.values.begin(FIRST);
    await findDifference(rig, ["two"]);
    rig.clock.nowMs += 60 * SECOND_MS;
  }
  assert.equal(rig.audit.nodeBeside("one")?.name, "one");
});

test("a difference that a single read does not confirm hides no other one", async () => {
  const rig = createRig();
  rig.values.add(keyOf(0), FIRST, digits(1));
  rig.values.add(keyOf(1), FIRST, digits(2));
  rig.apply([], "one");
  rig.artefacts.add(keyOf(0).address);
  rig.answer(50, keyOf(0));
  rig.answer(50, keyOf(1));
  for (let turn = 0; turn < 20; turn++) {
    await settled();
  }
  assert.deepEqual(rig.drops, ["difference"]);
});

test("restored values that nobody read lately answer only after one of them was compared", async () => {
  const { audit, values, reads } = createRig();
  values.add(keyOf(0), FIRST, digits(1));
  values.sourceNodes.add(RESTORED);
  values.isChecked = false;
  await audit.check();
  assert.deepEqual([values.isChecked, reads.length], [true, 1]);
});

test("while no node responds, a check of new values comes only each two seconds, however fast blocks come", async () => {
  const { reads, refusing, apply, clock } = createRig({ passed: [] });
  refusing.add("one").add("two");
  for (let block = 0; block < 50; block++) {
    apply([0], "one");
    clock.nowMs += 200;
    await settled();
    await settled();
  }
  assert.ok(reads.length <= 2 * 6, `${reads.length} reads in 10 s`);
});

test("after two disagreements, a read from the origin that contradicts the source node drops nothing", async () => {
  const rig = createRig();
  for (let count = 0; count < 3; count++) {
    rig.values.begin(FIRST);
    await findDifference(rig, ["two"]);
    rig.clock.nowMs += 60 * SECOND_MS;
  }
  assert.deepEqual(rig.drops, ["difference", "difference"]);
});
