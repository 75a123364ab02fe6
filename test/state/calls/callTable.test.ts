import assert from "node:assert/strict";
import { test } from "node:test";
import type { BlockId } from "../../../src/core/heads.ts";
import { CallTable } from "../../../src/state/calls/callTable.ts";
import { createTelemetry } from "../../../src/telemetry/telemetry.ts";
import { hashOf } from "../../support/builders/heads.ts";
import { createCost } from "../costRig.ts";

const block = (number: number): BlockId => ({ number: BigInt(number), hash: hashOf(number) });

test("clearing the answers also clears the copies in other processes", () => {
  let cleared = 0;
  const table = new CallTable({
    values: { isTrusted: true, get: () => undefined, isApplied: () => true, isWrittenSince: () => false },
    follower: { generation: 0 },
    ...{ chain: "chain", maxBytes: 100_000, cost: createCost().cost, telemetry: createTelemetry({ level: "silent" }) },
    onCleared: () => {
      assert.equal(table.get("call"), undefined, "the answers are cleared first");
      cleared++;
    },
  });
  for (const number of [1, 2]) {
    table.record("call", table.get("call"), "eth_call", block(number));
  }
  assert.ok(table.get("call"));
  table.clear();
  assert.equal(cleared, 1);
});
