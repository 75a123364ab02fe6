import assert from "node:assert/strict";
import { test } from "node:test";
import { LagBound, RECOVERY_MS, slownessMs } from "../truth/chain/lagBound.ts";
import { TruthChain } from "../truth/chain/truthChain.ts";
import { namesUnknownBlock } from "../truth/judge/namedBlocks.ts";
import { errorFault } from "./errorRules.ts";
import { Recorder } from "./recorder.ts";

const BEYOND = { code: -32_602, message: "block range extends beyond current head block: requested 12, head 11" };

/** A recorder, and a function that gives it the responses of a chain. */
const createRig = async () => {
  const chain = await TruthChain.create(901, 1);
  const recorder = new Recorder();
  const call = { method: "eth_chainId", params: [] };
  const add = (response: { readonly result?: unknown; readonly error?: typeof BEYOND }): void => {
    const startMs = performance.now();
    recorder.answer(chain, { call, ...response, startMs, endMs: startMs }, "test", "a1");
  };
  return { chain, recorder, add };
};

test("the allowance for late timers has a limit", () => {
  assert.deepEqual([0, 50, 100, 5_000].map(slownessMs), [0, 1_000, 2_000, 2_000]);
});

test("a time is quiet before a fault, and from its recovery on", () => {
  const bound = new LagBound();
  const beforeMs = performance.now() - 10;
  assert.ok(bound.isQuiet(beforeMs, beforeMs));
  const end = bound.beginFault();
  assert.ok(!bound.isQuiet(performance.now(), performance.now()));
  end();
  const endMs = performance.now();
  assert.ok(!bound.isQuiet(endMs + RECOVERY_MS / 2, endMs + 10_000));
  assert.ok(bound.isQuiet(endMs + RECOVERY_MS + 1, endMs + 10_000));
  bound.close();
});

test("an error is a finding if its kind is unknown, or if no fault explains it", () => {
  const fault = { isQuiet: false, namesUnknownBlock: false };
  const quiet = { isQuiet: true, namesUnknownBlock: false };
  assert.match(errorFault("-32603 Internal error", fault) ?? "", /unknown kind/);
  assert.match(errorFault("-32000 anything else", fault) ?? "", /unknown kind/);
  const pendingLogs = "-32000 the logs of pending block N are not known: it is not executed";
  assert.equal(errorFault(pendingLogs, fault), undefined);
  assert.match(errorFault(pendingLogs, { ...quiet, namesUnknownBlock: true }) ?? "", /no fault is active/);
  const missing = "-32000 header not found";
  assert.equal(errorFault(missing, fault), undefined);
  assert.equal(errorFault(missing, { ...quiet, namesUnknownBlock: true }), undefined);
  assert.match(errorFault(missing, quiet) ?? "", /no fault is active/);
  const aboveHead = "-32602 invalid block range params";
  assert.equal(errorFault(aboveHead, { ...quiet, namesUnknownBlock: true }), undefined);
  assert.match(errorFault(aboveHead, quiet) ?? "", /no fault is active/);
});

test("forebay may not know a block that is newer than the allowed lag, or was replaced", async () => {
  const { chain } = await createRig();
  await chain.seal();
  const nowMs = performance.now();
  const names = (params: readonly unknown[], startMs: number): boolean =>
    namesUnknownBlock(chain, { call: { method: "eth_call", params }, startMs, endMs: startMs });
  const { head } = chain;
  const number = `0x${head.number.toString(16)}`;
  assert.ok(names([{}, number], nowMs));
  assert.ok(names([{ blockHash: head.hash }], nowMs));
  assert.ok(!names([{}, number], nowMs + 10_000));
  assert.ok(!names([{ blockHash: head.hash }], nowMs + 10_000));
  assert.ok(!names([{}, "latest"], nowMs));
  await chain.reorg(1, 1);
  assert.ok(names([{ blockHash: head.hash }], nowMs + 10_000));
});

test("only results count as answers, and a large share of errors is a shortfall", async () => {
  const { chain, recorder, add } = await createRig();
  chain.lagBound.beginFault();
  for (let count = 0; count < 50; count++) {
    add({ result: "0x385" });
  }
  add({ error: BEYOND });
  assert.deepEqual([recorder.answers, recorder.errorResponses], [50, 1]);
  assert.doesNotMatch(recorder.shortfalls().join(), /errors are a share/);
  add({ error: BEYOND });
  assert.match(recorder.shortfalls().join(), /errors are a share/);
  assert.deepEqual(recorder.findings, []);
  add({ error: { code: -32_000, message: "anything else" } });
  add({ error: { code: -32_603, message: "Internal error" } });
  assert.deepEqual([...recorder.findingsByKind.keys()], ["error", "internal"]);
});

test("a run whose answers nearly all come during faults is not enough", async () => {
  const { chain, recorder, add } = await createRig();
  assert.match(recorder.shortfalls().join(), /no answer came/);
  add({ result: "0x385" });
  assert.deepEqual(recorder.shortfalls(), []);
  chain.lagBound.beginFault();
  for (let count = 0; count < 5; count++) {
    add({ result: "0x385" });
  }
  assert.match(recorder.shortfalls().join(), /quiet bound/);
});

test("an answer on a connection is compared with the newest head that the connection has shown", async () => {
  const { chain, recorder } = await createRig();
  const older = chain.head;
  await chain.seal();
  let startMs = performance.now();
  const answer = (number: number, connection: string): void => {
    startMs++;
    const call = { method: "eth_blockNumber", params: [] };
    const result = `0x${number.toString(16)}`;
    recorder.answer(chain, { call, result, startMs, endMs: startMs }, "test", connection);
  };
  answer(older.number, "connection 1");
  answer(chain.head.number, "connection 1");
  assert.deepEqual(recorder.findings, [], "an older head is allowed at first");
  answer(older.number, "connection 2");
  assert.deepEqual(recorder.findings, []);
  answer(older.number, "connection 1");
  assert.deepEqual([...recorder.findingsByKind.keys()], ["stale"]);
});
