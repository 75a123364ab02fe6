import assert from "node:assert/strict";
import { test } from "node:test";
import { snapshotIntervalMs } from "../../src/app/chainSnapshot.ts";
import { maxMissingBlocks } from "../../src/state/stateFollower.ts";

/** The time that a restart may take. */
const RESTART_MS = 20_000;

for (const blockTimeMs of [100, 250, 1_000, 2_000, 6_000, 12_000]) {
  test(`with a block each ${blockTimeMs} ms, a killed process loses one interval of known state, and not all of it`, () => {
    const intervalMs = snapshotIntervalMs(blockTimeMs);
    assert.ok((intervalMs + RESTART_MS) / blockTimeMs <= maxMissingBlocks(blockTimeMs));
    assert.ok(intervalMs >= 60_000 && intervalMs <= 300_000);
  });
}
