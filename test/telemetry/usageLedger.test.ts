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

test("clients without a key are counted by chain and class of address, and calls to nodes by who causes them", async () => {
  const { ledger, scrape } = createLedger(2);
  const { ledger: other } = createLedger(2);
  const usageOf = other.addresses("op");
  const classes = {
    loopback: ["127.0.0.1", "0:0:0:0::/64"],
    private: [
      "10.1.2.3",
      "192.168.0.1",
      "172.16.0.1",
      "172.31.255.1",
      "169.254.1.1",
      "fd00:1:2:3::/64",
      "fe80:0:0:0::/64",
    ],
    public: ["203.0.113.5", "172.32.0.1", "172.15.0.1", "2001:db8:0:0::/64", "unknown"],
  };
  for (const address of Object.values(classes).flat()) {
    usageOf(address).countCall(1, false, false);
  }
  const count = other.nodeCalls("op");
  count({ clientId: "127.0.0.1", connection: {} }, 20);
  count({ clientId: "audit" }, 5);
  count(undefined, 5);
  ledger.add(other.takeChanges());
  const { keys, addresses, total, nodes, bill } = JSON.parse(ledger.format("calls", 10));
  assert.deepEqual(keys, []);
  assert.deepEqual(
    addresses.map((row: Record<string, unknown>) => [row.chain, row.class, row.calls, row.spentUnits]),
    Object.entries(classes).map(([name, list]) => ["op", name, list.length, name === "loopback" ? 20 : 0]),
  );
  assert.equal(total.calls, Object.values(classes).flat().length);
  assert.deepEqual(nodes, [
    { chain: "op", caller: "clients", calls: 1, units: 20 },
    { chain: "op", caller: "forebay", calls: 2, units: 10 },
  ]);
  assert.deepEqual(bill, { calls: 3, units: 30 });
  assert.deepEqual(await scrape(), {});
});
