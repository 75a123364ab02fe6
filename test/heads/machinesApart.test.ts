import assert from "node:assert/strict";
import { test } from "node:test";
import { createRandomBelow } from "../support/builders/randomValues.ts";
import type { ChainNode } from "../support/servers/chainNode.ts";
import { mineFor, served, type Tracking, trackHeads } from "./trackHeads.ts";

/** Each request reaches one of several machines, some of them `lags` blocks behind. A connection stays at one for some requests. */
const balance = (node: ChainNode, lags: number, stay: number, seed: number): void => {
  const random = createRandomBelow(seed);
  const next = () => {
    if (random(stay) === 0) {
      node.lag = random(2) * lags;
    }
  };
  const { send, batch } = node;
  let isBatch = false;
  node.send = (call, scope) => {
    if (!isBatch) {
      next();
    }
    return send(call, scope);
  };
  node.batch = async (calls, scope) => {
    next();
    isBatch = true;
    const result = batch(calls, scope);
    isBatch = false;
    return result;
  };
};

const gaps = ({ changes }: Tracking): string[] => {
  const lost: string[] = [];
  let last: bigint | undefined;
  for (const { from, to } of changes) {
    const [first] = to;
    if (first !== undefined && last !== undefined && from.length === 0 && first.number !== last + 1n) {
      lost.push(`${last} -> ${first.number}`);
    }
    last = to.at(-1)?.number ?? last;
  }
  return lost;
};

for (const seed of [1, 2, 3]) {
  test(`a single URL of two machines, one 12 s behind: each block is published, with seed ${seed}`, async (t) => {
    const setup = await trackHeads(t, { height: 1_000 });
    balance(setup.node, 6, 6, seed);
    await mineFor(setup, 800_000, 2_000, () => setup.heads.markActive());
    assert.deepEqual(gaps(setup), []);
    assert.deepEqual(
      setup.changes.filter(({ from }) => from.length > 0),
      [],
    );
    assert.ok(setup.chain.latest.number - (served(setup)?.number ?? 0n) < 30n);
  });
}
