import assert from "node:assert/strict";
import { test } from "node:test";
import type { Check } from "../../src/core/node.ts";
import { Evidence } from "../../src/verification/evidence.ts";
import { failed, passed, uncomputable } from "../../src/verification/findings.ts";

const create = (nodes: readonly string[], off: readonly Check[] = []) => {
  const events: string[] = [];
  const evidence = new Evidence({
    nodes,
    off,
    onOff: (check) => events.push(`off ${check}`),
    onWrongAnswer: (node, check) => events.push(`convicted ${node} ${check}`),
  });
  return { evidence, events };
};

test("a check that fails on every node from the start is off", () => {
  const { evidence, events } = create(["one", "two"]);
  assert.equal(evidence.judge(failed("receipts"), "one"), "doubtful");
  assert.equal(evidence.judge(failed("receipts"), "one"), "doubtful");
  assert.deepEqual([evidence.isOff("receipts"), events], [false, []]);
  assert.equal(evidence.judge(failed("receipts"), "two"), "accepted");
  assert.equal(evidence.judge(failed("receipts"), "one"), "accepted");
  assert.deepEqual([evidence.isOff("receipts"), events], [true, ["off receipts"]]);
  assert.equal(evidence.isOff("header"), false);
});

test("a node that lied first is convicted once another one passes; the check is never off then", () => {
  const { evidence, events } = create(["liar", "honest"]);
  assert.equal(evidence.judge(failed("header"), "liar"), "doubtful");
  assert.equal(evidence.judge(passed("header"), "honest"), "right");
  assert.deepEqual(events, ["convicted liar header"]);
  for (const node of ["liar", "honest"]) {
    assert.equal(evidence.judge(failed("header"), node), "lie");
  }
  assert.equal(evidence.isOff("header"), false);
});

test("the only node is convicted where it passed before, and believed where it never did", () => {
  const { evidence } = create(["only"]);
  assert.equal(evidence.judge(passed("header"), "only"), "right");
  assert.equal(evidence.judge(failed("header"), "only"), "lie");
  assert.equal(evidence.judge(failed("transactions"), "only"), "accepted");
});

test("what does not depend on an encoding is a lie at once, and never off", () => {
  const { evidence } = create(["only"]);
  for (const check of ["json", "id", "status", "block", "transaction", "logs"] as const) {
    for (let time = 0; time < 3; time++) {
      assert.equal(evidence.judge(failed(check), "only"), "lie");
    }
  }
});

test("what cannot be computed is served once every node answers so", () => {
  const { evidence } = create(["one", "two"]);
  evidence.judge(passed("header"), "one");
  assert.equal(evidence.judge(uncomputable("header"), "one"), "doubtful");
  assert.equal(evidence.judge(uncomputable("header"), "two"), "accepted");
  assert.equal(evidence.judge(uncomputable("header"), "one"), "accepted");
  assert.equal(evidence.judge(failed("header"), "one"), "lie");
});

test("a check that the operator knows to fail is off from the start", () => {
  const { evidence, events } = create(["one", "two"], ["depositReceipts"]);
  assert.equal(evidence.judge(failed("depositReceipts"), "one"), "accepted");
  assert.equal(evidence.judge(failed("receipts"), "one"), "doubtful");
  assert.deepEqual(events, []);
});
