import assert from "node:assert/strict";
import { mock, test } from "node:test";
import type { Check } from "../../src/core/node.ts";
import { type AnsweredCall, Evidence, type EvidenceNode } from "../../src/verification/evidence.ts";
import { failed, passed, uncomputable } from "../../src/verification/findings.ts";
import { evidenceNodes } from "../support/builders/evidenceNodes.ts";
import { silent } from "../support/builders/silent.ts";

const of = (name: string, method = "eth_getBlockByHash"): AnsweredCall => ({ node: { name }, call: { method } });

const create = (names: readonly string[], off: readonly Check[] = [], changed: Partial<EvidenceNode> = {}) => {
  const nodes = evidenceNodes(...names)().map((node, index) => (index === 0 ? node : { ...node, ...changed }));
  const events: string[] = [];
  const telemetry = silent();
  mock.method(telemetry.log, "warn", ({ check }: { check: Check }) => events.push(`off ${check}`));
  const onWrongAnswer = (node: string, check: Check) => events.push(`wrong ${node} ${check}`);
  const evidence = new Evidence({ chain: "test", nodes: () => nodes, off, onWrongAnswer }, telemetry);
  return { evidence, events };
};

test("a check that fails on every node from the start is off", () => {
  const { evidence, events } = create(["one", "two"]);
  assert.equal(evidence.evaluate(failed("receipts"), of("one")), "unconfirmed");
  assert.equal(evidence.evaluate(failed("receipts"), of("one")), "unconfirmed");
  assert.deepEqual([evidence.isOff("receipts"), events], [false, []]);
  assert.equal(evidence.evaluate(failed("receipts"), of("two")), "accepted");
  assert.equal(evidence.evaluate(failed("receipts"), of("one")), "accepted");
  assert.deepEqual([evidence.isOff("receipts"), events], [true, ["off receipts"]]);
  assert.equal(evidence.isOff("header"), false);
});

test("an earlier failure is reported as wrong when another node passes, and the check is never off", () => {
  const { evidence, events } = create(["liar", "honest"]);
  assert.equal(evidence.evaluate(failed("header"), of("liar")), "unconfirmed");
  assert.equal(evidence.evaluate(passed("header"), of("honest")), "verified");
  assert.deepEqual(events, ["wrong liar header"]);
  for (const node of ["liar", "honest"]) {
    assert.equal(evidence.evaluate(failed("header"), of(node)), "wrong");
  }
  assert.equal(evidence.isOff("header"), false);
});

test("a failure of the only node is wrong if the node passed before, and accepted if it never did", () => {
  const { evidence } = create(["only"]);
  assert.equal(evidence.evaluate(passed("header"), of("only")), "verified");
  assert.equal(evidence.evaluate(failed("header"), of("only")), "wrong");
  assert.equal(evidence.evaluate(failed("transactions"), of("only")), "accepted");
});

test("a failure of a check without computed hashes is wrong at once, and the check is never off", () => {
  const { evidence } = create(["only"]);
  for (const check of ["json", "id", "status", "block", "transaction", "logs"] as const) {
    for (let time = 0; time < 3; time++) {
      assert.equal(evidence.evaluate(failed(check), of("only")), "wrong");
    }
  }
});

test("an uncomputable response is accepted once every node returns one", () => {
  const { evidence } = create(["one", "two"]);
  evidence.evaluate(passed("header"), of("one"));
  assert.equal(evidence.evaluate(uncomputable("header"), of("one")), "unconfirmed");
  assert.equal(evidence.evaluate(uncomputable("header"), of("two")), "accepted");
  assert.equal(evidence.evaluate(uncomputable("header"), of("one")), "accepted");
  assert.equal(evidence.evaluate(failed("header"), of("one")), "wrong");
});

test("a header with an unknown field is wrong if a verified header before it has more fork fields", () => {
  const { evidence } = create(["only"]);
  const header = (number: bigint, forkFields: number) => ({ header: { number, forkFields } });
  assert.equal(evidence.evaluate({ ...passed("header"), ...header(100n, 6) }, of("only")), "verified");
  assert.equal(evidence.evaluate({ ...uncomputable("header"), ...header(100n, 5) }, of("only")), "wrong");
  assert.equal(evidence.evaluate({ ...uncomputable("header"), ...header(101n, 5) }, of("only")), "wrong");
  assert.equal(evidence.evaluate({ ...uncomputable("header"), ...header(99n, 5) }, of("only")), "accepted");
  assert.equal(evidence.evaluate({ ...uncomputable("header"), ...header(101n, 6) }, of("only")), "accepted");
});

test("a check that the operator knows to fail is off from the start", () => {
  const { evidence, events } = create(["one", "two"], ["depositReceipts"]);
  assert.equal(evidence.evaluate(failed("depositReceipts"), of("one")), "accepted");
  assert.equal(evidence.evaluate(failed("receipts"), of("one")), "unconfirmed");
  assert.deepEqual(events, []);
});

for (const [why, changed] of [
  ["is down or suspended", { available: false }],
  ["has refused the method", { accepts: (method: string) => method !== "eth_getBlockByHash" }],
] as const) {
  test(`a node that ${why} is no reason not to serve an uncomputable response, and never passes a failed check`, () => {
    const { evidence, events } = create(["one", "two"], [], changed);
    assert.equal(evidence.evaluate(uncomputable("header"), of("one")), "accepted");
    assert.equal(evidence.evaluate(failed("receipts"), of("one")), "unconfirmed");
    assert.deepEqual([evidence.isOff("receipts"), events], [false, []]);
  });
}

for (const [why, changed] of [
  ["is cordoned", { state: { isCordoned: true }, available: false }],
  ["never gets the method", { serves: (method: string) => method === "eth_sendRawTransaction" }],
] as const) {
  test(`a node that ${why} has no part in the evidence`, () => {
    const { evidence, events } = create(["one", "two"], [], changed);
    assert.equal(evidence.evaluate(uncomputable("header"), of("one")), "accepted");
    assert.equal(evidence.evaluate(failed("receipts"), of("one")), "accepted");
    assert.deepEqual(events, ["off receipts"]);
  });
}
