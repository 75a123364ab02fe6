import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { metric, rpc } from "../support/clients/rpc.ts";
import { until } from "../support/clients/until.ts";
import { createFakeChain } from "../support/fakes/fakeChain.ts";
import { createFakeNode, type FakeNode } from "../support/fakes/fakeNode.ts";
import { createService, type Service, type ServiceChain } from "../support/servers/service.ts";

interface Tiers {
  readonly own: FakeNode;
  readonly paid: FakeNode;
  readonly service: Service;
}

const addressOf = (at: number): string => `0x${at.toString(16).padStart(40, "0")}`;

/** An own node, and a provider in the second tier that is listed first. */
const startTiers = async (
  t: TestContext,
  own: Partial<ServiceChain["nodes"][number]> = {},
  chainOptions: Partial<ServiceChain> = {},
): Promise<Tiers> => {
  const chain = createFakeChain({ height: 100 });
  const [ownNode, paid] = await Promise.all([createFakeNode({ chain }), createFakeNode({ chain })]);
  const service = await createService(
    {
      nodes: [
        { name: "paid", url: paid.url, priority: 1 },
        { name: "own", url: ownNode.url, ...own },
      ],
      ...chainOptions,
    },
    { cache: { memoryBytes: 0 } },
  );
  t.after(async () => {
    ownNode.release();
    await service.close();
    await Promise.all([ownNode.close(), paid.close()]);
  });
  for (const name of ["own", "paid"]) {
    while ((await metric(service.opsUrl, "forebay_upstream_head", `node="${name}"`)) === 0) {
      // The service is ready after the first head of any node.
    }
  }
  return { own: ownNode, paid, service };
};

const readBalance = async ({ url }: Service, at: number): Promise<void> => {
  const { status, body } = await rpc(url, "eth_getBalance", [addressOf(at), "0x10"]);
  assert.deepEqual({ status, result: body.result }, { status: 200, result: "0x10" });
};

test("a node of the second tier gets no read while the first tier can take it, and heads of both are followed", async (t) => {
  const { own, paid, service } = await startTiers(t, {}, { verify: "cheap" });
  own.faults.delayMs = 20;
  for (let at = 0; at < 20; at += 1) {
    await readBalance(service, at);
  }
  assert.equal((await rpc(service.url, "eth_getLogs", [{ fromBlock: "0x10", toBlock: "0x20" }])).status, 200);
  assert.equal(paid.count("eth_getBalance", "eth_getLogs"), 0);
  assert.ok(own.count("eth_getBalance") >= 20);
  const polls = paid.count("eth_getBlockByNumber");
  while (paid.count("eth_getBlockByNumber") === polls) {
    await paid.asked("eth_getBlockByNumber");
  }
});

test("a node of the second tier gets no read while the own node is ahead of it, and the served head waits for both", async (t) => {
  // An origin that lags has its vote for 15 s.
  const { own, paid, service } = await startTiers(t, {}, { blockTimeMs: 20_000 });
  const heads = service.chains[0]?.upstreams.heads;
  paid.faults.height = 100;
  for (let ahead = 1; ahead <= 3; ahead += 1) {
    own.chain.mine();
    assert.equal((await heads?.refresh())?.latest.number, 100n);
    for (let at = 0; at < 10; at += 1) {
      assert.equal((await rpc(service.url, "eth_getBalance", [addressOf(at), "latest"])).body.result, "0x64");
    }
  }
  assert.equal(paid.count("eth_getBalance"), 0);
  assert.ok(own.count("eth_getBalance") >= 30);
});

test("a node of the second tier answers while the first tier is down, and not any more when it is back", async (t) => {
  const { own, paid, service } = await startTiers(t, {}, { upstream: { breaker: { failures: 3, openMs: 200 } } });
  own.faults.answer = "reset";
  for (let at = 0; at < 20; at += 1) {
    await readBalance(service, at);
  }
  assert.ok(paid.count("eth_getBalance") >= 20);
  own.faults.answer = undefined;
  for (let at = 100, before = own.count("eth_getBalance"); own.count("eth_getBalance") === before; at += 1) {
    await readBalance(service, at);
  }
  const before = paid.count("eth_getBalance");
  for (let at = 1_000; at < 1_020; at += 1) {
    await readBalance(service, at);
  }
  assert.equal(paid.count("eth_getBalance"), before);
});

test("a block that the first tier does not have is read from the second", async (t) => {
  const { own, paid, service } = await startTiers(t);
  own.faults.lag = 50;
  const { body } = await rpc(service.url, "eth_getBalance", [addressOf(1), "0x60"]);
  assert.equal(body.result, "0x60");
  assert.ok(paid.count("eth_getBalance") > 0);
});

test("a full node of the first tier leaves reads to the second, and a slow read is not hedged there", async (t) => {
  const { own, paid, service } = await startTiers(t, { concurrency: 2 }, { upstream: { hedge: { afterMs: 1 } } });
  const nodes = service.chains[0]?.upstreams.nodes ?? [];
  await until(() => nodes.every(({ isFull }) => !isFull), "the calls of the start have ended");
  own.faults.methods = ["eth_getBalance"];
  own.faults.answer = "hang";
  const held = own.asked("eth_getBalance");
  let first: Promise<void>;
  let isHeld: boolean;
  // While forebay's own reads fill the node, the second tier answers.
  do {
    first = readBalance(service, 1);
    isHeld = await Promise.race([held.then(() => true), first.then(() => false)]);
  } while (!isHeld);
  const before = paid.count("eth_getBalance");
  await readBalance(service, 2);
  assert.equal(paid.count("eth_getBalance"), before + 1);
  own.faults.answer = undefined;
  own.release();
  await first;
  assert.equal(paid.count("eth_getBalance"), before + 1);
});

test("a node gets only the methods that it is configured for, and heads are read in any case", async (t) => {
  const { own, paid, service } = await startTiers(t, { methods: { never: ["eth_getBalance", "debug_*"] } });
  for (let at = 0; at < 5; at += 1) {
    await readBalance(service, at);
  }
  const { status } = await rpc(service.url, "eth_getStorageAt", [addressOf(1), "0x0", "0x10"]);
  assert.equal(status, 200);
  assert.deepEqual([own.count("eth_getBalance"), paid.count("eth_getStorageAt")], [0, 0]);
  assert.ok(paid.count("eth_getBalance") >= 5 && own.count("eth_getStorageAt") > 0);
});

test("a method that no node may get is an error that says so", async (t) => {
  const node = await createFakeNode();
  const service = await createService({ nodes: [{ url: node.url, methods: { only: ["eth_get*"] } }] });
  t.after(async () => {
    await service.close();
    await node.close();
  });
  for (const method of ["eth_call", "eth_sendRawTransaction", "custom_method"]) {
    const { body } = await rpc(service.url, method, [method.startsWith("eth_send") ? "0x00" : { to: addressOf(1) }]);
    assert.equal(body.error?.code, -32_601, method);
    assert.match(body.error?.message ?? "", /no node is configured to get it/);
  }
});
