import assert from "node:assert/strict";
import { test } from "node:test";
import { RECOVERY_MS } from "../truth/chain/lagBound.ts";
import { pauseMs } from "./faults.ts";

test("each third fault that delays forebay ends with a quiet window of 5 s after the recovery", () => {
  const random = (below: number): number => below - 1;
  const pauses = [1, 2, 3, 4, 5, 6].map((delays) => pauseMs(delays, false, random) >= RECOVERY_MS + 5_000);
  assert.deepEqual(pauses, [false, false, true, false, false, true]);
  assert.ok(pauseMs(3, true, random) < RECOVERY_MS);
});
