import assert from "node:assert/strict";
import { test } from "node:test";
import { rulesAt } from "../../src/ethereum/rules.ts";
import { resolveForks } from "../../src/runs/rulesWatch.ts";

const UNLISTED = 7_654_321n;
const BOB = 60_808n;
const UNICHAIN = 130n;
const ISTHMUS = "0x098999be";
const JOVIAN = "0x3db6be2b";
const NOVEMBER_2026 = 1_795_132_800n;

/** A node whose newest block begins with a deposit of that selector. */
const nodeWith = (selector: string, hasClz: boolean) => {
  const asked: string[] = [];
  const ask = async (method: string): Promise<unknown> => {
    asked.push(method);
    if (method === "eth_getBlockByNumber") {
      return { transactions: [{ type: "0x7e", input: `${selector}00` }] };
    }
    if (hasClz) {
      return `0x${"ff".padStart(64, "0")}`;
    }
    throw new Error("invalid opcode: opcode 0x1e not defined");
  };
  return { ask, asked };
};

const newestFork = async (chainId: bigint, ask: (method: string) => Promise<unknown>) => {
  const found = await resolveForks("auto", chainId, ask);
  assert.ok(found);
  const { forks, hasTimes } = found;
  return { fork: rulesAt(forks, 1n, NOVEMBER_2026).op, hasTimes, isShown: forks.isShown === true };
};

test("a chain whose newest fork is in the table needs no node", async () => {
  const { ask, asked } = nodeWith(ISTHMUS, false);
  assert.deepEqual(await newestFork(UNICHAIN, ask), { fork: "karst", hasTimes: true, isShown: false });
  assert.deepEqual(asked, []);
});

test("a chain outside the table has the fork that its newest block shows, and Karst if CLZ runs", async () => {
  assert.equal((await newestFork(UNLISTED, nodeWith(ISTHMUS, false).ask)).fork, "isthmus");
  assert.equal((await newestFork(UNLISTED, nodeWith(JOVIAN, false).ask)).fork, "jovian");
  assert.deepEqual(await newestFork(UNLISTED, nodeWith(JOVIAN, true).ask), {
    fork: "karst",
    hasTimes: false,
    isShown: true,
  });
  assert.equal(await resolveForks("auto", UNLISTED, async () => null), undefined);
});

test("a chain with a fork that is not in the table has the fork that its newest block shows", async () => {
  const { isShown } = await newestFork(BOB, async () => null);
  assert.equal(isShown, true, "a node that shows none decides too");
  assert.deepEqual(await newestFork(BOB, nodeWith(ISTHMUS, false).ask), {
    fork: "isthmus",
    hasTimes: true,
    isShown: true,
  });
  assert.deepEqual(await newestFork(BOB, nodeWith(JOVIAN, false).ask), {
    fork: "jovian",
    hasTimes: true,
    isShown: true,
  });
});
