import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { NodeError, type NodeErrorKind, UnverifiedError } from "../../src/core/node.ts";
import { NodeState, type OwnCallOutcome } from "../../src/nodes/nodeState.ts";
import { silent } from "../support/builders/silent.ts";

const METHOD = "eth_call";

const createState = () => {
  const time = { ms: 0 };
  const node = { hasOther: false, ownCall: "refused" as "refused" | "fails" | "answered" | "notSent", ownCalls: 0 };
  const budget = { isSpent: false, spend: () => undefined };
  const identity = { isIdentified: true, isOpen: true, fault: undefined, retryInMs: 1_000 };
  const errorOf = (kind: NodeErrorKind, retryAfterSeconds?: number, text = "no") =>
    new NodeError(kind, "one", text, { reply: { status: 401, text, retryAfterSeconds } });
  const state = new NodeState(
    {
      ...{ labels: { chain: "chain", node: "one" }, host: "one.test", nowMs: () => time.ms, identity, budget },
      breaker: undefined,
      hasOther: () => node.hasOther,
      sendOwnCall: async (): Promise<OwnCallOutcome> => {
        node.ownCalls += 1;
        if (node.ownCall === "answered" || node.ownCall === "notSent") {
          return node.ownCall;
        }
        return node.ownCall === "refused" ? errorOf("unauthorized") : new NodeError("timeout", "one", "late");
      },
    },
    silent(),
  );
  /** One read that begins and ends now. Returns whether it was sent. */
  const read = async (outcome: NodeErrorKind | "ok", retryAfterSeconds?: number, text?: string): Promise<boolean> => {
    const isTrial = state.ask(METHOD);
    if (isTrial instanceof NodeError) {
      return false;
    }
    const error = outcome === "ok" ? undefined : errorOf(outcome, retryAfterSeconds, text);
    state.begin();
    state.ended("response", time.ms, false);
    state.called(error, METHOD, time.ms);
    state.answered(METHOD, { isAnswer: error === undefined, isTrial, startMs: time.ms });
    await nextTurn();
    return true;
  };
  const fault = async (isHeadRead = false): Promise<void> => {
    state.begin();
    state.ended("fault", time.ms, isHeadRead);
    await nextTurn();
  };
  return { time, node, budget, identity, state, read, fault };
};

const repeat = async (times: number, run: () => Promise<unknown>): Promise<void> => {
  for (let at = 0; at < times; at += 1) {
    await run();
  }
};

test("a node of another chain and a cordoned one are not used, a spent and an unchecked one are spare", () => {
  const { state, budget, identity } = createState();
  const uses = [];
  uses.push([state.use, state.because, state.untilMs]);
  budget.isSpent = true;
  uses.push([state.use, state.because, state.untilMs]);
  budget.isSpent = false;
  identity.isOpen = false;
  uses.push([state.use, state.because, state.untilMs]);
  state.hung(true);
  uses.push([state.use, state.because, state.untilMs]);
  identity.isIdentified = false;
  uses.push([state.use, state.because, state.untilMs]);
  state.cordon(true);
  uses.push([state.use, state.because, state.untilMs]);
  assert.deepEqual(uses, [
    ["yes", undefined, undefined],
    ["spare", "its units of the day are spent", undefined],
    ["spare", "the next request checks its chain", undefined],
    ["lastResort", "it responds neither to requests nor to a probe", undefined],
    ["no", "no response yet", 1_000],
    ["no", "it is cordoned", undefined],
  ]);
});

test("a node that failed five times is the last resort for 5 s each time, and a poll is the trial", async () => {
  const { time, node, state, fault } = createState();
  node.ownCall = "fails";
  await repeat(5, () => fault());
  assert.deepEqual([state.use, state.untilMs, node.ownCalls], ["lastResort", 5_000, 1]);
  state.ended("response", time.ms, true);
  assert.equal(state.use, "lastResort", "a poll before the end of the time");
  time.ms += 5_000;
  assert.deepEqual([state.use, state.needsTrial], ["yes", true]);
  await fault(true);
  assert.deepEqual([state.use, state.untilMs], ["lastResort", 5_000]);
  time.ms += 5_000;
  state.begin();
  assert.equal(state.use, "lastResort", "the trial is in flight");
  state.ended("response", time.ms, true);
  assert.deepEqual([state.use, state.because], ["yes", undefined]);
});

test("a read that a failed node answers as the last resort ends the state", async () => {
  const { time, node, state, fault } = createState();
  node.ownCall = "fails";
  await repeat(5, () => fault());
  time.ms += 1;
  state.ended("response", time.ms, false);
  assert.equal(state.use, "yes");
});

test("one read of many that select a node is its trial, from the moment that it selects it", async () => {
  const { time, node, state, fault } = createState();
  node.ownCall = "fails";
  await repeat(5, () => fault());
  time.ms += 5_000;
  const first = state.ask(METHOD);
  assert.equal(first, true);
  assert.equal(state.use, "lastResort");
  assert.equal(state.ask(METHOD), false);
  state.answered(METHOD, { isAnswer: false, isTrial: false, startMs: time.ms });
  assert.equal(state.use, "lastResort", "another read ended");
  state.answered(METHOD, { isAnswer: false, isTrial: true, startMs: time.ms });
  assert.deepEqual([state.use, state.needsTrial], ["yes", true], "the trial showed nothing");
});

test("a node is refused after three reads in a row, and is tried after 10 s, then 20 s, up to five minutes", async () => {
  const { time, state, read } = createState();
  await read("unauthorized");
  await read("unauthorized");
  await read("ok");
  await read("unauthorized");
  await read("billing");
  assert.equal(state.use, "yes");
  await read("unauthorized");
  assert.match(state.because ?? "", /rejects the credentials \(HTTP status 401/);
  for (const seconds of [10, 20, 40, 80, 160, 300, 300]) {
    assert.deepEqual([state.use, state.untilMs], ["lastResort", seconds * 1_000]);
    time.ms += seconds * 1_000;
    assert.deepEqual([state.use, state.needsTrial], ["yes", true]);
    await read("unauthorized");
  }
  state.begin();
  state.ended("response", time.ms, true);
  assert.equal(state.use, "lastResort", "a plan that is exhausted still answers polls");
  time.ms += 300_000;
  await read("ok");
  assert.deepEqual([state.use, state.because], ["yes", undefined]);
});

test("a node that answers forebay's own call is used, however often it refuses reads of clients", async () => {
  const { node, state, read } = createState();
  node.ownCall = "answered";
  await repeat(9, () => read("unauthorized"));
  assert.deepEqual([state.use, node.ownCalls], ["yes", 3]);
});

test("reads that began before the last refusal are part of it", async () => {
  const { time, state } = createState();
  const refusal = new NodeError("unauthorized", "one", "no", { reply: { status: 401, text: "no" } });
  time.ms = 10;
  for (let at = 0; at < 20; at += 1) {
    state.called(refusal, METHOD, at / 10);
  }
  await nextTurn();
  assert.equal(state.use, "yes");
});

test("a node that refuses gets a read that another node failed, else one in a second, and each answer ends the state", async () => {
  const { time, node, state, read } = createState();
  await repeat(3, () => read("unauthorized"));
  assert.equal(await read("unauthorized"), false);
  time.ms += 1_000;
  assert.equal(await read("unauthorized"), true);
  assert.equal(await read("unauthorized"), false);
  node.hasOther = true;
  assert.equal(await read("unauthorized"), true);
  assert.equal(state.use, "lastResort");
  assert.equal(await read("ok"), true);
  assert.equal(state.use, "yes");
});

test("a rate limit doubles to 10 s until a call is answered, and calls wait for 2 s of it at most", async () => {
  const { time, state, read } = createState();
  // The only node of a chain must not be out for long after its limit ends.
  for (const ms of [1_000, 2_000, 4_000, 8_000, 10_000, 10_000]) {
    assert.deepEqual([state.use, state.pauseMs], ["yes", 0]);
    await read("rateLimited");
    assert.deepEqual(
      [state.use, state.pauseMs, state.because],
      ["lastResort", Math.min(ms, 2_000), "it limits the rate"],
    );
    state.called(new NodeError("rateLimited", "one", "no"), METHOD, time.ms - 1);
    assert.deepEqual([state.pauseMs, state.untilMs], [Math.min(ms, 2_000), ms], "a call that was in flight");
    time.ms += Math.min(ms, 2_000);
    assert.equal(state.pauseMs, 0, "polls of the head go on");
    time.ms += ms - Math.min(ms, 2_000);
  }
  await read("ok");
  await read("rateLimited");
  assert.equal(state.pauseMs, 1_000);
  await read("rateLimited", 60);
  assert.equal(state.pauseMs, 60_000);
});

test("the wait for a rate limit stays short if the node answers some of the calls that it gets at its end", async () => {
  const { time, state, read } = createState();
  await read("rateLimited");
  for (let round = 0; round < 5; round += 1) {
    time.ms += state.untilMs ?? 0;
    const sentMs = time.ms;
    time.ms += 10;
    state.called(new NodeError("rateLimited", "one", "no"), METHOD, sentMs);
    time.ms += 10;
    state.called(undefined, METHOD, sentMs);
    assert.deepEqual([state.use, state.pauseMs], ["lastResort", 990]);
  }
  time.ms += state.pauseMs;
  await read("rateLimited", 60);
  state.called(undefined, METHOD, time.ms - 1);
  assert.equal(state.pauseMs, 60_000, "the node names the time");
});

test("a node with a wrong response is spare for 30 s, and then one read is the trial", async () => {
  const { time, state, read } = createState();
  const error = new UnverifiedError("one", "receipts", true);
  assert.deepEqual([state.wrong(error), state.wrong(error)], [true, false]);
  assert.deepEqual([state.use, state.because, state.untilMs], ["spare", "its response was wrong", 30_000]);
  await read("ok");
  assert.equal(state.use, "spare");
  time.ms += 30_000;
  assert.equal(state.needsTrial, true);
  state.wrong(new UnverifiedError("one", "receipts", true));
  assert.equal(state.untilMs, 60_000);
  time.ms += 60_000;
  await read("ok");
  assert.equal(state.use, "yes");
  state.wrong(new UnverifiedError("one", "receipts", false));
  assert.equal(state.use, "yes", "the error is not certain");
});

test("a refusal that names a method, and an error that other nodes do not have, exclude this method only", async () => {
  const { time, state, read } = createState();
  await repeat(2, () => read("unauthorized", undefined, "eth_call is not available on your plan"));
  assert.equal(state.accepts(METHOD), true);
  state.methodFailed(new NodeError("other", "one", "unknown"), METHOD);
  assert.deepEqual([state.accepts(METHOD), state.accepts("eth_getCode"), state.use], [false, true, "yes"]);
  time.ms += 10_000;
  assert.equal(state.accepts(METHOD), true);
  assert.equal(state.ask(METHOD), true);
  assert.equal(state.accepts(METHOD), false);
  state.answered(METHOD, { isAnswer: true, isTrial: true, startMs: time.ms });
  assert.equal(state.accepts(METHOD), true);
});
