import assert from "node:assert/strict";
import { test } from "node:test";
import { NodeLimits } from "../../src/logs/nodeLimits.ts";
import { chainOf } from "./chainOf.ts";
import { createFakeLogNode } from "./fakeLogNode.ts";

const MANY = 10_000;

const create = () => {
  const node = createFakeLogNode({ chain: chainOf(1) });
  const limits = new NodeLimits([node]);
  const accept = (blocks: number, times: number) => {
    for (let count = 0; count < times; count++) {
      limits.of(node).recordAccepted(blocks);
    }
  };
  return { node, limits, accept };
};

test("a refused range is halved, until the node accepts one", () => {
  const { node, limits } = create();
  assert.equal(limits.best.plan(MANY).blocks, 1_999);
  assert.ok(!limits.isTried);
  for (const [refused, next] of [
    [1_999, 999],
    [999, 499],
  ] as const) {
    limits.of(node).recordRefused(refused);
    assert.equal(limits.of(node).blocks, next);
    assert.ok(!limits.isTried);
  }
  limits.of(node).recordAccepted(499);
  assert.ok(limits.isTried);
});

test("after ten accepted ranges, one range is larger by a quarter", () => {
  const { node, limits, accept } = create();
  limits.of(node).recordRefused(800);
  accept(400, 9);
  assert.deepEqual(limits.best.plan(MANY), { blocks: 400, isLarger: false });
  accept(400, 1);
  assert.deepEqual(limits.best.plan(MANY), { blocks: 500, isLarger: true });
  assert.deepEqual(limits.best.plan(MANY), { blocks: 400, isLarger: false });
  limits.of(node).recordAccepted(500);
  assert.deepEqual(limits.best.plan(MANY), { blocks: 500, isLarger: false });
});

test("a refused larger range changes nothing, and small ranges do not count", () => {
  const { node, limits, accept } = create();
  limits.of(node).recordRefused(800);
  accept(400, 10);
  assert.ok(limits.best.plan(MANY).isLarger);
  limits.of(node).recordRefused(500);
  assert.equal(limits.of(node).blocks, 400);
  accept(10, 20);
  assert.deepEqual(limits.best.plan(MANY), { blocks: 400, isLarger: false });
  assert.equal(limits.best.plan(7).blocks, 7);
});
