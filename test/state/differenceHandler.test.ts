import assert from "node:assert/strict";
import { test } from "node:test";
import { createDifferenceHandler } from "../../src/state/differenceHandler.ts";
import { createTelemetry } from "../../src/telemetry/telemetry.ts";

test("a wrong value rests the source, drops all values with the reason, and is counted", async () => {
  const telemetry = createTelemetry({ level: "silent" });
  const events: string[] = [];
  const handle = createDifferenceHandler(
    {
      chain: "chain",
      trust: {
        rest: () => {
          events.push("rest");
          return "trace";
        },
      },
      follower: { forget: (reason) => events.push(`forget ${reason}`) },
      telemetry,
    },
    "audit",
  );
  handle({
    key: { field: "balance", address: `0x${"aa".repeat(20)}`, slot: undefined },
    block: { number: 7n, hash: `0x${"77".repeat(32)}` },
    known: "1",
    actual: "2",
  });
  assert.deepEqual(events, ["rest", "forget difference"]);
  const { values } = await telemetry.metrics.stateDifferences.get();
  assert.deepEqual(
    values.map(({ labels, value }) => [labels.kind, value]),
    [["audit", 1]],
  );
});
