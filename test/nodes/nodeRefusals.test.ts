import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { NodeError, type NodeErrorKind } from "../../src/core/node.ts";
import { createCall } from "../../src/jsonrpc/call.ts";
import type { OwnCallOutcome } from "../../src/nodes/nodeFailures.ts";
import { NodeRefusals } from "../../src/nodes/nodeRefusals.ts";
import { UpstreamNode } from "../../src/nodes/upstreamNode.ts";
import { silent } from "../support/builders/silent.ts";
import { createFakeNode } from "../support/fakes/fakeNode.ts";

const createRefusals = () => {
  const time = { ms: 0 };
  const node = { isEachOut: false, hasOther: false, refusesOwnCalls: true, isPaused: false, ownCalls: 0 };
  const refusals = new NodeRefusals(
    {
      ...{ labels: { chain: "chain", node: "one" }, host: "one.test", nowMs: () => time.ms },
      sendOwnCall: async (): Promise<OwnCallOutcome> => {
        if (node.isPaused) {
          return "notSent";
        }
        node.ownCalls += 1;
        const reply = { status: 401, text: "no" };
        return node.refusesOwnCalls ? new NodeError("unauthorized", "one", "no", { reply }) : "answered";
      },
      isEachOut: () => node.isEachOut,
      hasOther: () => node.hasOther,
    },
    silent(),
  );
  const refuse = async (kind: NodeErrorKind = "unauthorized", retryAfterSeconds?: number): Promise<void> => {
    refusals.recordError(
      new NodeError(kind, "one", "no", { reply: { status: 401, text: "no", retryAfterSeconds } }),
      "eth_call",
    );
    await nextTurn();
  };
  return { time, node, refusals, refuse };
};

test("a node is out after three refusals in a row, and is tried again after 10 s, then 20 s, up to five minutes", async () => {
  const { time, refusals, refuse } = createRefusals();
  await refuse();
  await refuse();
  refusals.recordResponse("eth_call");
  await refuse();
  await refuse();
  assert.equal(refusals.isOut, false);
  await refuse();
  assert.equal(refusals.isOut, true);
  assert.match(String(refusals.begin("eth_call")?.message), /rejects the credentials \(HTTP status 401/);
  for (const seconds of [10, 20, 40, 80, 160, 300, 300]) {
    time.ms += seconds * 1_000 - 1;
    assert.equal(refusals.isOut, true, `${seconds} s`);
    time.ms += 1;
    assert.equal(refusals.needsTrial, true);
    assert.equal(refusals.begin("eth_call"), undefined);
    assert.equal(refusals.isOut, true, "one read is the trial");
    await refuse();
    assert.equal(refusals.isOut, true);
  }
  time.ms += 300_000;
  assert.equal(refusals.begin("eth_call"), undefined);
  refusals.recordResponse("eth_call");
  assert.deepEqual([refusals.isOut, refusals.needsTrial, refusals.reason], [false, false, undefined]);
});

test("a node that answers forebay's own call is not out, however often it refuses those of clients", async () => {
  const { node, refusals, refuse } = createRefusals();
  node.refusesOwnCalls = false;
  for (let refused = 1; refused <= 9; refused += 1) {
    await refuse();
    assert.equal(refusals.isOut, false);
    assert.equal(node.ownCalls, Math.floor(refused / 3));
  }
});

test("a node that is out is used again if it refuses the trial of a client, and answers forebay's own call", async () => {
  const { time, node, refusals, refuse } = createRefusals();
  await refuse();
  await refuse();
  await refuse();
  assert.equal(refusals.isOut, true);
  time.ms += 10_000;
  node.refusesOwnCalls = false;
  assert.equal(refusals.begin("eth_call"), undefined);
  await refuse();
  assert.deepEqual([refusals.isOut, refusals.needsTrial], [false, false]);
});

test("the refusals of one batch are one, and those of one rate limit too", async () => {
  const { time, refusals, refuse } = createRefusals();
  await Promise.all([refuse(), refuse(), refuse()]);
  assert.equal(refusals.isOut, false);
  refusals.recordResponse("eth_call");
  for (let at = 0; at < 3; at += 1) {
    assert.equal(refusals.isOut, false);
    await refuse("rateLimited");
    await refuse("rateLimited");
    time.ms += 1_000;
  }
  assert.equal(refusals.isOut, true);
});

test("a node that names the time of its next try is tried then", async () => {
  const { time, refusals, refuse } = createRefusals();
  await refuse("rateLimited", 60);
  assert.equal(refusals.isOut, true);
  time.ms += 59_999;
  assert.equal(refusals.isOut, true);
  time.ms += 1;
  assert.equal(refusals.needsTrial, true);
});

test("a node that names a long time stays out, although no call of forebay's own can be sent in it", async () => {
  const { time, node, refusals, refuse } = createRefusals();
  node.isPaused = true;
  await refuse();
  await refuse();
  await refuse("unauthorized", 60);
  assert.equal(refusals.isOut, true);
  time.ms += 60_000;
  assert.equal(refusals.begin("eth_call"), undefined);
  await refuse("unauthorized", 60);
  assert.equal(refusals.isOut, true, "the trial was refused");
  time.ms += 60_000;
  assert.equal(refusals.begin("eth_call"), undefined);
  refusals.recordResponse("eth_call");
  assert.equal(refusals.isOut, false);
});

test("the last usable node is tried every 10 s, and used as soon as it answers", async () => {
  const { time, node, refusals, refuse } = createRefusals();
  node.isEachOut = true;
  for (let at = 0; at < 3; at += 1) {
    assert.equal(refusals.begin("eth_call"), undefined);
    await refuse();
  }
  assert.equal(refusals.begin("eth_call"), undefined);
  await refuse();
  assert.equal(refusals.begin("eth_call")?.status, 503);
  time.ms += 10_000;
  assert.equal(refusals.begin("eth_call"), undefined);
  await refuse();
  assert.equal(refusals.begin("eth_call")?.status, 503);
  time.ms += 10_000;
  assert.equal(refusals.begin("eth_call"), undefined);
  refusals.recordResponse("eth_call");
  assert.equal(refusals.begin("eth_call"), undefined);
  assert.equal(refusals.isOut, false);
});

test("a node that is out is asked for each read that a usable node failed", async () => {
  const { node, refusals, refuse } = createRefusals();
  node.hasOther = true;
  for (let at = 0; at < 5; at += 1) {
    assert.equal(refusals.begin("eth_call"), undefined);
    await refuse();
  }
  assert.equal(refusals.isOut, true);
  assert.equal(refusals.begin("eth_call"), undefined);
  refusals.recordResponse("eth_call");
  assert.equal(refusals.isOut, false);
});

test("while no other node can be used, a node that is out is asked once a second", async () => {
  const { time, refusals, refuse } = createRefusals();
  await refuse();
  await refuse();
  await refuse();
  assert.equal(refusals.begin("eth_call")?.status, 503);
  time.ms += 1_000;
  assert.equal(refusals.begin("eth_call"), undefined);
  await refuse();
  assert.equal(refusals.begin("eth_call")?.status, 503);
  time.ms += 1_000;
  assert.equal(refusals.begin("eth_call"), undefined);
  refusals.recordResponse("eth_call");
  assert.equal(refusals.isOut, false);
});

test("the last usable node is asked while it limits the rate: its pauses are short", async () => {
  const { time, node, refusals, refuse } = createRefusals();
  node.isEachOut = true;
  for (let at = 0; at < 5; at += 1) {
    assert.equal(refusals.begin("eth_call"), undefined);
    await refuse("rateLimited");
    time.ms += 1_000;
  }
});

test("a refusal that names a method excludes this method only", async () => {
  const { time, refusals } = createRefusals();
  const error = new NodeError("unauthorized", "one", "trace_block is not available on your plan");
  for (let at = 0; at < 3; at += 1) {
    assert.equal(refusals.accepts("trace_block"), true);
    refusals.recordError(error, "trace_block");
  }
  assert.deepEqual(
    [refusals.accepts("trace_block"), refusals.accepts("eth_call"), refusals.isOut],
    [false, true, false],
  );
  time.ms += 10_000;
  assert.equal(refusals.accepts("trace_block"), true);
  assert.equal(refusals.begin("trace_block"), undefined);
  assert.equal(refusals.accepts("trace_block"), false);
  refusals.recordResponse("trace_block");
  assert.equal(refusals.accepts("trace_block"), true);
});

test("a node whose third refusal names a long pause is out for it", async (t) => {
  const fake = await createFakeNode();
  const node = new UpstreamNode({ name: "one", url: fake.url }, { chain: "test" }, silent());
  t.after(async () => {
    await node.close();
    await fake.close();
  });
  node.identity.isIdentified = true;
  for (const [answer, retryAfter, kind] of [
    [401, undefined, "unauthorized"],
    [401, undefined, "unauthorized"],
    [429, 60, "rateLimited"],
  ] as const) {
    Object.assign(fake.faults, { answer, retryAfter });
    const scope = { signal: new AbortController().signal, deadlineMs: performance.now() + 20_000 };
    await assert.rejects(node.send(createCall("eth_call", []), scope), { kind });
  }
  await nextTurn();
  assert.equal(node.isRejecting, true);
});
