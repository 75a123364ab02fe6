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
      limits.recordAccepted(node, blocks);
    }
  };
  return { node, limits, accept };
};

test("a refused range is halved, until the node accepts one", () => {
  const { node, limits } = create();
  assert.equal(limits.plan(MANY).blocks, 1_999);
  assert.ok(!limits.isTried);
  for (const [refused, next] of [
    [1_999, 999],
    [999, 499],
  ] as const) {
    limits.recordRefused(node, refused);
    assert.equal(limits.blocks(node), next);
    assert.ok(!limits.isTried);
  }
  limits.recordAccepted(node, 499);
  assert.ok(limits.isTried);
});

test("after ten accepted ranges, one range is larger by a quarter", () => {
  const { node, limits, accept } = create();
  limits.recordRefused(node, 800);
  accept(400, 9);
  assert.deepEqual(limits.plan(MANY), { blocks: 400, isLarger: false });
  accept(400, 1);
  assert.deepEqual(limits.plan(MANY), { blocks: 500, isLarger: true });
  assert.deepEqual(limits.plan(MANY), { blocks: 400, isLarger: false });
  limits.recordAccepted(node, 500);
  assert.deepEqual(limits.plan(MANY), { blocks: 500, isLarger: false });
});

test("a refused larger range changes nothing, and small ranges do not count", () => {
  const { node, limits, accept } = create();
  limits.recordRefused(node, 800);
  accept(400, 10);
  assert.ok(limits.plan(MANY).isLarger);
  limits.recordRefused(node, 500);
  assert.equal(limits.blocks(node), 400);
  accept(10, 20);
  assert.deepEqual(limits.plan(MANY), { blocks: 400, isLarger: false });
  assert.equal(limits.plan(7).blocks, 7);
});
