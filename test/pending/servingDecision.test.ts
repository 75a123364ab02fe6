import assert from "node:assert/strict";
import { test } from "node:test";
import { decideBackend, decideServing, type ServingFacts } from "../../src/pending/servingDecision.ts";
import { flashblock } from "../support/builders/flashblocks.ts";
import { createRig } from "./pendingRig.ts";

const auto = { configured: "auto", hasFeeds: true, isFeedStale: false, hasSubSecondBlocks: false } as const;

test("the backend is the configured one, else native without a live feed, else the feed, else the node", () => {
  for (const configured of ["feed", "native", "node"] as const) {
    assert.equal(decideBackend(undefined, { ...auto, configured }), configured);
  }
  assert.equal(decideBackend(undefined, auto), "feed");
  assert.equal(decideBackend(undefined, { ...auto, hasFeeds: false, isFeedStale: true }), "node");
  assert.equal(decideBackend("feed", { ...auto, hasSubSecondBlocks: true }), "feed");
  assert.equal(decideBackend("feed", { ...auto, hasSubSecondBlocks: true, isFeedStale: true }), "native");
  assert.equal(decideBackend("native", auto), "native");
});

test("the source of answers at pending in every case", () => {
  const facts: ServingFacts = {
    backend: "feed",
    isFeedStale: false,
    hasBlocks: true,
    isExecuted: true,
    isDegraded: false,
    nodeBuildsPending: true,
  };
  const shown = (changed: Partial<ServingFacts>) => {
    const { mode, blocksFrom, stateFrom } = decideServing({ ...facts, ...changed });
    return `${mode} ${blocksFrom} ${stateFrom}`;
  };
  assert.equal(shown({}), "live view view");
  assert.equal(shown({ isDegraded: true }), "degraded view view");
  assert.equal(shown({ isExecuted: false }), "unverified view node");
  assert.equal(shown({ isExecuted: false, nodeBuildsPending: false }), "unverified view latest");
  assert.equal(shown({ hasBlocks: false }), "live latest latest");
  assert.equal(shown({ hasBlocks: false, isDegraded: true }), "degraded latest latest");
  assert.equal(shown({ isFeedStale: true }), "stale node node");
  assert.equal(shown({ isFeedStale: true, nodeBuildsPending: false }), "stale latest latest");
  assert.equal(shown({ backend: "native" }), "native latest latest");
  assert.equal(shown({ backend: "node" }), "node node node");
  assert.equal(shown({ backend: "node", nodeBuildsPending: false }), "none latest latest");
});

test("a chain that changes from a feed to 200 ms blocks becomes native and stays native", async (t) => {
  const rig = createRig(t);
  await rig.send(flashblock(0));
  assert.equal(rig.shown(), "101-0");
  const start = 1_700_000_202n;
  for (let at = 0n; at < 40n; at++) {
    rig.heads.move({ number: 101n + at, timestamp: start + at / 5n });
    await rig.pass(200);
    assert.equal(rig.view().base.number, 101n + at);
  }
  assert.equal(rig.shown(), "native latest");
  assert.equal(rig.heads.native.at(-1), true);
  await rig.send(flashblock(0, { number: 141n }));
  assert.equal(rig.view().mode, "native");
});

test("a header with timestampMs makes the chain native", async (t) => {
  const rig = createRig(t);
  rig.heads.move({ number: 101n, header: { timestampMs: "0x1" } });
  assert.equal(rig.view().mode, "native");
});

test("a header whose timestampMs is null has none", async (t) => {
  const rig = createRig(t);
  rig.heads.move({ number: 101n, header: { timestampMs: null } });
  assert.notEqual(rig.view().mode, "native");
});

test("without a feed the node's own pending block answers, if it builds one", async (t) => {
  const rig = createRig(t, { hasFeed: false });
  rig.view();
  await rig.pass(300);
  assert.equal(rig.shown(), "none latest");
  rig.answers.set("eth_getBlockByNumber pending", { number: "0x66" });
  rig.heads.move({ number: 101n });
  await rig.pass(50);
  assert.equal(rig.shown(), "node node");
});

test("an unused chain causes no requests", async (t) => {
  const rig = createRig(t, { hasFeed: false });
  for (let number = 101n; number < 130n; number++) {
    rig.heads.move({ number });
    await rig.pass(2_000);
  }
  assert.ok(rig.asked.length <= 16, `${rig.asked.length} calls`);
});
