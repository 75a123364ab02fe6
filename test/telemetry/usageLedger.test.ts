import assert from "node:assert/strict";
import { test } from "node:test";
import { createTelemetry } from "../../src/telemetry/telemetry.ts";
import { UsageLedger } from "../../src/telemetry/usageLedger.ts";

const createLedger = (topKeys: number) => {
  const { metrics, registry } = createTelemetry({ level: "silent" });
  const ledger = new UsageLedger({ topKeys, metrics });
  const scrape = async (): Promise<Readonly<Record<string, number>>> => {
    await registry.metrics();
    const { values } = await metrics.keyAmounts.units.get();
    return Object.fromEntries(values.map(({ labels, value }) => [String(labels.key), value]));
  };
  return { ledger, scrape };
};

test("a key that becomes one of the most expensive takes the series of another, and no unit is counted twice", async () => {
  const { ledger, scrape } = createLedger(1);
  ledger.of("a").countCall(10, false, false);
  ledger.of("b").countCall(4, false, false);
  assert.deepEqual(await scrape(), { a: 10, other: 4 });
  ledger.of("b").countCall(20, false, false);
  assert.deepEqual(await scrape(), { b: 20, other: 4 });
  ledger.of("a").countCall(1, false, false);
  assert.deepEqual(await scrape(), { b: 20, other: 5 });
});

test("the number of keys is limited, and further ones are summed", async () => {
  const { ledger, scrape } = createLedger(2);
  for (let index = 0; index < 10_500; index++) {
    ledger.of(`subject-${index}`).countCall(1, false, false);
  }
  ledger.of("subject-0").countCall(5, false, false);
  assert.deepEqual(Object.keys(await scrape()).toSorted(), ["other", "subject-0"]);
  const { keys, others, total } = JSON.parse(ledger.format("calls", 3));
  // 500 subjects beyond the limit are one entry.
  assert.deepEqual([keys[0].key, keys[0].units, keys[1].key, keys[1].units], ["other", 500, "subject-0", 6]);
  assert.deepEqual([others.keys, total.calls], [10_001 - 3, 10_501]);
});
