import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { NodeError } from "../../src/core/node.ts";
import { forge } from "./forge.ts";
import { BLOCK_MS, mineFor, pause, run, STEP_MS, served, startAlone, type Tracking, trackHeads } from "./trackHeads.ts";

const HEIGHT = 1_500;
const LAG = 1_000;
const SLOW_BLOCK_MS = 12_000;
const FORGED_BLOCKS = 30;

/** Starts with one node at the newest block, and two that are back later and synchronise far below. */
const startSynchronising = async (t: TestContext, futureSeconds: number) => {
  const setup = await startAlone(
    t,
    HEIGHT,
    ([, ...late]) => {
      for (const node of late) {
        node.lag = LAG;
      }
    },
    futureSeconds,
  );
  for (const node of setup.nodes) {
    node.refuses = false;
  }
  return setup;
};

/** Runs for a number of blocks. The served head may not be lower at a step than before. */
const runForwards = async (setup: Tracking, blocks: number) => {
  let before = served(setup)?.number ?? 0n;
  await run(setup, blocks, () => {
    const now = served(setup)?.number ?? 0n;
    assert.ok(now >= before, `${now} after ${before}`);
    before = now;
  });
};

test("one failed request does not move the head back to two origins that synchronise", async (t) => {
  const setup = await startSynchronising(t, 0);
  await runForwards(setup, 15);
  const { node } = setup;
  const { send } = node;
  let failures = 0;
  node.send = async (call, reach) => {
    if (failures === 0 && call.params[0] !== "latest" && Number(call.params[0]) < HEIGHT - LAG + 200) {
      failures++;
      throw new NodeError("timeout", node.name, "timed out");
    }
    return send(call, reach);
  };
  await runForwards(setup, 30);
  assert.equal(failures, 1);
});

test("blocks whose time is ahead of the clock do not move the head back to origins that synchronise", async (t) => {
  await runForwards(await startSynchronising(t, 1_000_000), 30);
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
  // Machines of one node may differ for 5 s, and a head that no origin has is served for 2 s more.
  await pause(setup, 6_500);
  assert.equal(served(setup)?.number, setup.chain.latest.number - 1n);
  await pause(setup, 3_500);
  const kept = setup.chain.latest.number - 3n;
  assert.equal(served(setup)?.number, kept);
  const moved = setup.changes.slice(before).filter(({ from }) => from.length > 0);
  assert.deepEqual(
    moved.map(({ from, to }) => [from.map(({ number }) => number), to]),
    [[[kept + 1n, kept + 2n], []]],
  );
});
