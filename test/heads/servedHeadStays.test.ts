import assert from "node:assert/strict";
import { test } from "node:test";
import { NodeError } from "../../src/core/node.ts";
import { forge } from "./forge.ts";
import { mineFor, run, served, trackHeads } from "./trackHeads.ts";

const HEIGHT = 1_500;
const LAG = 1_000;
const BLOCK_MS = 2_000;
const SLOW_BLOCK_MS = 12_000;
const STEP_MS = 100;
const FORGED_BLOCKS = 30;

/** Starts with one node at the newest block, and two that are back later and synchronise far below. */
const trackSynchronising = async (t: Parameters<typeof trackHeads>[0], futureSeconds: number) => {
  const startSeconds = Math.floor(Date.now() / 1_000) - 2 * HEIGHT + futureSeconds;
  const tracking = await trackHeads(t, {
    ...{ height: HEIGHT, startSeconds, nodes: 3 },
    alter: (nodes) => {
      for (const node of nodes.slice(1)) {
        node.refuses = true;
        node.lag = LAG;
      }
    },
  });
  await tracking.clock.advance(3_000);
  for (const node of tracking.nodes) {
    node.refuses = false;
  }
  return tracking;
};

/** Runs for a time. Returns whether the served head was lower at a step than before. */
const goesBack = async ({ clock, chain, heads }: Awaited<ReturnType<typeof trackHeads>>, forMs: number) => {
  let isBack = false;
  let before = heads.current()?.latest.number ?? 0n;
  for (let ms = STEP_MS; ms <= forMs; ms += STEP_MS) {
    heads.markActive();
    await clock.advance(STEP_MS);
    if (ms % BLOCK_MS === 0) {
      chain.mine();
    }
    const now = heads.current()?.latest.number ?? 0n;
    isBack ||= now < before;
    before = now;
  }
  return isBack;
};

test("one failed request does not move the head back to two origins that synchronise", async (t) => {
  const tracking = await trackSynchronising(t, 0);
  assert.equal(await goesBack(tracking, 30_000), false);
  const { node } = tracking;
  const { send } = node;
  let failures = 0;
  node.send = async (call, reach) => {
    if (failures === 0 && call.params[0] !== "latest" && Number(call.params[0]) < HEIGHT - LAG + 200) {
      failures++;
      throw new NodeError("timeout", node.name, "timed out");
    }
    return send(call, reach);
  };
  assert.equal(await goesBack(tracking, 60_000), false);
  assert.equal(failures, 1);
});

test("blocks whose time is ahead of the clock do not move the head back to origins that synchronise", async (t) => {
  assert.equal(await goesBack(await trackSynchronising(t, 1_000_000), 60_000), false);
});

test("a hash with another number is not the block of the origins that have it", async (t) => {
  const { clock, chain, heads } = await trackHeads(t, {
    ...{ height: 60, nodes: 3, startSeconds: 1_700_000_000 },
    alter: ([liar], { latest }) => {
      if (liar === undefined) {
        return;
      }
      const { send } = liar;
      const forged = new TextEncoder().encode(JSON.stringify({ ...latest.json, number: "0x100000" }));
      liar.send = async (call, reach) => (call.params[0] === "latest" ? forged : send(call, reach));
    },
  });
  await mineFor({ clock, chain }, 10_000, BLOCK_MS);
  assert.ok((heads.current()?.latest.number ?? 0n) <= chain.latest.number);
});

test("late blocks of a liar replace no block that two origins have by then", async (t) => {
  const { clock, chain, heads, nodes } = await trackHeads(t, { height: 60, nodes: 3, secondsPerBlock: 12 });
  const [liar, first, other] = nodes;
  assert.ok(liar && first && other);
  const { batch } = liar;
  let isFirst = true;
  const sendLate: typeof batch = async (calls, reach) => {
    if (!isFirst) {
      await clock.sleep(2_000, new AbortController().signal);
    }
    isFirst = false;
    return batch(calls, reach);
  };
  /** Events by their time: one origin stops, the liar contradicts the other, and the first one is back. */
  const events: Readonly<Record<number, () => void>> = {
    60000: () => {
      other.height = Number(chain.latest.number);
      liar.height = other.height;
    },
    110000: () => {
      liar.batch = sendLate;
      liar.height = undefined;
      liar.chain = forge(chain, FORGED_BLOCKS, { secondsPerBlock: SLOW_BLOCK_MS / 1_000 });
    },
    121000: () => {
      other.height = undefined;
    },
  };
  let forgedMs = 0;
  for (let ms = STEP_MS; ms <= 150_000; ms += STEP_MS) {
    heads.markActive();
    events[ms]?.();
    await clock.advance(STEP_MS);
    if (ms % SLOW_BLOCK_MS === 0) {
      chain.mine();
    }
    const head = heads.current();
    const isForged = head !== undefined && chain.byHash(head.latest.hash) === undefined;
    const areEqual = [first, other].every(({ health }) => health.headHash === chain.latest.hash);
    forgedMs += ms > 121_000 && isForged && areEqual ? STEP_MS : 0;
  }
  assert.equal(forgedMs, 0);
});

test("the head moves back: no block is both removed and added", async (t) => {
  const setup = await trackHeads(t, { height: 100, nodes: 2 });
  await run(setup, 3);
  const before = setup.changes.length;
  for (const node of setup.nodes) {
    node.lag = 3;
  }
  await mineFor(setup, 10_000, 100_000, () => setup.heads.markActive());
  const kept = setup.chain.latest.number - 3n;
  assert.equal(served(setup)?.number, kept);
  const moved = setup.changes.slice(before).filter(({ from }) => from.length > 0);
  assert.deepEqual(
    moved.map(({ from, to }) => [from.map(({ number }) => number), to]),
    [[[kept + 1n, kept + 2n], []]],
  );
});
