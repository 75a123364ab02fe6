import assert from "node:assert/strict";
import { test } from "node:test";
import { metric, rpc } from "../support/clients/rpc.ts";
import { until } from "../support/clients/until.ts";
import { createFakeNode } from "../support/fakes/fakeNode.ts";
import { startCommand } from "../support/servers/command.ts";
import { startRedis } from "../support/servers/redis.ts";

const PRICE = 20;
/** Balances for which the budget is enough. */
const READS = 20;

let nextAddress = 1;
const readBalances = async ({ url }: { readonly url: string }, times: number): Promise<void> => {
  for (let read = 0; read < times; read++) {
    const account = `0x${(nextAddress++).toString(16).padStart(40, "0")}`;
    const { body } = await rpc(url, "eth_getBalance", [account, "0x1"]);
    assert.equal(body.result, "0x1");
  }
};

test("two replicas together give a node its units of the day, and the next process continues with them", async (t) => {
  const [first, second, redis] = await Promise.all([createFakeNode(), createFakeNode(), startRedis(t)]);
  t.after(() => Promise.all([first.close(), second.close()]));
  const start = () =>
    startCommand(t, {
      chains: [
        {
          name: "chain",
          nodes: [
            { name: "first", url: first.url, unitsPerDay: READS * PRICE },
            { name: "second", url: second.url, priority: 1 },
          ],
          upstream: { hedge: { maxShare: 0 } },
        },
      ],
      cache: { redis: redis.url },
      usage: { units: { "*": 0, eth_getBalance: PRICE } },
    });
  const ratio = ({ opsUrl }: { readonly opsUrl: string }) => metric(opsUrl, "forebay_upstream_budget_ratio");
  const one = await start();
  const other = await start();
  await readBalances(one, READS / 2);
  await until(async () => (await ratio(other)) === 0.5, "the other replica knows the half");
  await readBalances(other, READS / 2);
  assert.equal(first.count("eth_getBalance"), READS);
  await readBalances(other, 5);
  assert.equal(first.count("eth_getBalance"), READS);
  assert.equal(second.count("eth_getBalance"), 5);
  await until(async () => (await ratio(one)) === 1, "the first replica knows the whole");
  await readBalances(one, 5);
  assert.equal(first.count("eth_getBalance"), READS);
  for (const { lines } of [one, other]) {
    await until(
      () => lines.some(({ msg, node }) => node === "first" && String(msg).startsWith("the units of today are spent")),
      "each replica has logged it",
    );
  }

  const next = await start();
  await until(async () => (await ratio(next)) >= 1, "the next process knows the day");
  const before = first.count("eth_getBalance");
  await readBalances(next, 5);
  assert.equal(first.count("eth_getBalance"), before);
});
