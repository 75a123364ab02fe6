import assert from "node:assert/strict";
import { test } from "node:test";
import { type ReorgStep, startReorgRun } from "../world/reorgs/reorgRun.ts";

const STEPS: readonly ReorgStep[] = [
  { kind: "mine", blocks: 2 },
  { kind: "reorg", depth: 1 },
  { kind: "mine", blocks: 1 },
  { kind: "reorg", depth: 5 },
  { kind: "fork", depth: 0, ours: 3, theirs: 2 },
  { kind: "mine", blocks: 1 },
  { kind: "fork", depth: 4, ours: 2, theirs: 4 },
  { kind: "reorg", depth: 20 },
  { kind: "mine", blocks: 1 },
];

test("under load with reorganisations every response matches a view of the replica during the request", async (t) => {
  const { run, replicas } = await startReorgRun(t, 1);
  const untrue = await run(STEPS);
  for (const { answers, hits, views } of replicas) {
    t.diagnostic(`${answers} answers, ${hits} hits, ${views} views`);
  }
  assert.deepEqual(untrue.slice(0, 5), [], `${untrue.length} answers were not true`);
  assert.ok(replicas.every(({ hits }) => hits > 0));
});
