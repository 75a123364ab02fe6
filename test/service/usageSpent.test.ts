import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { type TestContext, test } from "node:test";
import { z } from "zod";
import { rpc } from "../support/clients/rpc.ts";
import { connectSocket } from "../support/clients/socketClient.ts";
import { until } from "../support/clients/until.ts";
import { createFakeNode, type FakeNode } from "../support/fakes/fakeNode.ts";
import { createService, type Service } from "../support/servers/service.ts";

const BALANCE = "eth_getBalance";
/** Of eth_getBalance, and of eth_getTransactionReceipt. */
const PRICE = 20;
const CALLS = 5;
const SUBSCRIPTIONS = 20;

const amounts = z.object({
  calls: z.number(),
  errors: z.number(),
  units: z.number(),
  savedUnits: z.number(),
  spentUnits: z.number(),
});
const report = z.object({
  keys: z.array(amounts.extend({ key: z.string() })),
  addresses: z.array(amounts.extend({ class: z.string() })),
  nodes: z.array(z.object({ caller: z.string(), units: z.number() })),
});

const keyOf = (name: string) => ({ name, sha256: createHash("sha256").update(name).digest("hex") });

const start = async (
  t: TestContext,
  access: Parameters<typeof createService>[1],
): Promise<{ readonly node: FakeNode; readonly service: Service }> => {
  const node = await createFakeNode();
  t.after(() => node.close());
  const service = await createService(
    { nodes: [{ url: node.url }], pending: { mode: "node" }, state: { follow: false } },
    access,
  );
  t.after(() => service.close());
  return { node, service };
};

const readUsage = async ({ opsUrl }: Service) => report.parse(await (await fetch(`${opsUrl}/usage`)).json());

const spentByClients = ({ nodes }: z.infer<typeof report>): number =>
  nodes.find(({ caller }) => caller === "clients")?.units ?? 0;

const addressOf = (index: number): string => `0x${(index + 1).toString(16).padStart(40, "0")}`;

const readBalances = async (service: Service, headers = {}): Promise<void> => {
  for (let time = 0; time < 2; time++) {
    for (let index = 0; index < CALLS; index++) {
      const { body } = await rpc(service.url, BALANCE, [addressOf(index), "0x1"], headers);
      assert.equal(body.error, undefined);
    }
  }
};

const COUNTED = {
  ...{ calls: 2 * CALLS, errors: 0 },
  ...{ units: 2 * CALLS * PRICE, savedUnits: CALLS * PRICE, spentUnits: CALLS * PRICE },
};

test("/usage has what a key spent at nodes, and none of the calls that it may not make", async (t) => {
  const { service } = await start(t, { access: { keys: [{ ...keyOf("reader"), deny: ["eth_getCode"] }] } });
  const key = { "x-api-key": "reader" };
  await readBalances(service, key);
  for (let index = 0; index < CALLS; index++) {
    const { body } = await rpc(service.url, "eth_getCode", [addressOf(index), "0x1"], key);
    assert.equal(body.error?.code, -32_601);
  }
  const usage = await readUsage(service);
  assert.deepEqual(usage.keys, [{ key: "reader", ...COUNTED }]);
  assert.equal(spentByClients(usage), COUNTED.spentUnits);
});

test("/usage has what clients without a key spent at nodes", async (t) => {
  const { service } = await start(t, {});
  await readBalances(service);
  const usage = await readUsage(service);
  assert.deepEqual(usage.addresses, [{ class: "loopback", ...COUNTED }]);
  assert.equal(spentByClients(usage), COUNTED.spentUnits);
});

test("calls above a rate limit, and those of a key without units, are no usage", async (t) => {
  const { service } = await start(t, {
    access: {
      keys: [
        { ...keyOf("slow"), limit: { calls: 1, seconds: 3_600 } },
        { ...keyOf("poor"), limit: { unitsPerDay: PRICE } },
      ],
    },
  });
  for (const name of ["slow", "poor"]) {
    const codes: unknown[] = [];
    for (let index = 0; index < CALLS; index++) {
      const { body } = await rpc(service.url, BALANCE, [addressOf(index), "0x1"], { "x-api-key": name });
      codes.push(body.error?.code);
    }
    const answered = codes.filter((code) => code === undefined).length;
    assert.ok(answered > 0 && answered < CALLS, String(codes));
    const { keys } = await readUsage(service);
    const usage = keys.find(({ key }) => key === name);
    assert.deepEqual([usage?.calls, usage?.units, usage?.errors], [answered, answered * PRICE, 0]);
  }
});

test("the reads of subscriptions to the inclusion of transactions are spent by their client", async (t) => {
  const { node, service } = await start(t, {
    access: { keys: [{ ...keyOf("watcher"), limit: { unitsPerDay: SUBSCRIPTIONS * PRICE } }] },
  });
  const socket = await connectSocket(service.url, { "x-api-key": "watcher" });
  t.after(() => socket.close());
  for (let index = 0; index < SUBSCRIPTIONS; index++) {
    const hash = `0x${(index + 1).toString(16).padStart(64, "0")}`;
    const { error } = await socket.call("eth_subscribe", "transactionInclusion", { hash });
    assert.equal(error, undefined);
  }
  await until(() => node.count("eth_getTransactionReceipt") >= SUBSCRIPTIONS, "each receipt is read");
  const { error } = await socket.call("eth_chainId");
  assert.equal(Object(error).code, -32_005);
  const usage = await readUsage(service);
  assert.ok(spentByClients(usage) >= SUBSCRIPTIONS * PRICE);
  assert.deepEqual(
    usage.keys.map(({ spentUnits }) => spentUnits),
    [spentByClients(usage)],
  );
});
