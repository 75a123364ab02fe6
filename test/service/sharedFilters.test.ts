import assert from "node:assert/strict";
import { describe, type TestContext, test } from "node:test";
import { createPublicClient, createWalletClient, defineChain, type Hex, http, type PublicClient } from "viem";
import { startAnvil } from "../devnet/anvil.ts";
import { TOKEN_ABI, TOKEN_BYTECODE } from "../devnet/token.ts";
import { devAccounts } from "../devnet/traffic.ts";
import { rpc } from "../support/clients/rpc.ts";
import { until } from "../support/clients/until.ts";
import { createFakeChain } from "../support/fakes/fakeChain.ts";
import { createFakeNode } from "../support/fakes/fakeNode.ts";
import { forwardTo, startFront } from "../support/fakes/front.ts";
import { startCluster, startRedis, startSentinels } from "../support/servers/redis.ts";
import { createService, type Service } from "../support/servers/service.ts";

const CHAIN_ID = 31_337;
const EVENTS = 20;
const NOT_FOUND = { code: -32_000, message: "filter not found" };

interface Log {
  readonly transactionHash: Hex;
  readonly logIndex: Hex;
  readonly blockHash: Hex;
  readonly removed?: boolean;
}

/** A real node that seals a block with each transaction, and a token on it. */
const startToken = async (t: TestContext) => {
  const node = await startAnvil(["--chain-id", String(CHAIN_ID)]);
  t.after(() => node.close());
  const [account] = devAccounts;
  assert.ok(account);
  const chain = defineChain({
    id: CHAIN_ID,
    name: "devnet",
    nativeCurrency: { name: "Ether", symbol: "ETH", decimals: 18 },
    rpcUrls: { default: { http: [node.url] } },
  });
  const options = { chain, transport: http(node.url), pollingInterval: 20 };
  const wallet = createWalletClient({ ...options, account });
  const client = createPublicClient(options);
  const hash = await wallet.deployContract({
    abi: TOKEN_ABI,
    bytecode: TOKEN_BYTECODE,
    args: [[account.address], 10n ** 9n],
  });
  const { contractAddress: address } = await client.waitForTransactionReceipt({ hash });
  assert.ok(address);
  const to = "0x00000000000000000000000000000000000000aa";
  /** Mines one block with one event. */
  const transfer = (value: bigint): Promise<Hex> =>
    wallet.writeContract({ address, abi: TOKEN_ABI, functionName: "transfer", args: [to, value] });
  return { node, chain, address, transfer };
};

const startReplicas = async (t: TestContext, nodeUrl: string, redis?: string): Promise<readonly Service[]> => {
  const start = () =>
    createService(
      { nodes: [{ url: nodeUrl }], blockTimeMs: 100, pending: { mode: "node" } },
      { cache: redis === undefined ? {} : { redis, redisTimeoutMs: 1_000 } },
    );
  const replicas = await Promise.all([start(), start()]);
  t.after(() => Promise.all(replicas.map((replica) => replica.close())));
  for (const { url } of replicas) {
    // Redis is not connected yet. A filter that is created now would be local.
    await until(async () => (await rpc(url, "eth_getFilterChanges", ["0x1"])).status === 200, "Redis is connected");
  }
  return replicas;
};

/** Sends each request to the next replica, as a load balancer without affinity does. */
const startBalancer = async (t: TestContext, replicas: readonly Service[]) => {
  let sent = 0;
  const front = await startFront((body) => forwardTo(replicas[sent++ % replicas.length]?.url ?? "", body));
  t.after(() => front.close());
  const ask = async (method: string, ...params: readonly unknown[]) => (await rpc(front.url, method, params)).body;
  return { url: front.url, ask };
};

describe("filters that replicas share", { concurrency: 3 }, () => {
  test("a viem client in front of two replicas gets each of 20 events once", async (t) => {
    const { node, chain, address, transfer } = await startToken(t);
    const redis = await startRedis(t);
    const balancer = await startBalancer(t, await startReplicas(t, node.url, redis.url));
    const client: PublicClient = createPublicClient({ chain, transport: http(balancer.url), pollingInterval: 20 });
    const sent: string[] = [];
    const seen: string[] = [];
    const errors: unknown[] = [];
    const unwatch = client.watchEvent({
      address,
      onLogs: (logs) => seen.push(...logs.map(({ transactionHash }) => transactionHash)),
      onError: (error) => errors.push(error),
    });
    const { admin } = redis;
    try {
      await until(async () => (await admin.keys("*:filter2:*")).length === 1, "its filter is made");
      for (let at = 1; at <= EVENTS; at++) {
        sent.push(await transfer(BigInt(at)));
        await until(() => seen.length >= at - 1, "it keeps up");
      }
      await until(() => seen.length >= EVENTS, "all have come");
      assert.equal((await admin.keys("*:filter2:*")).length, 1, "it polled one filter");
    } finally {
      unwatch();
      // Until the removal of its filter is answered, viem goes on polling.
      await until(async () => (await admin.keys("*:filter2:*")).length === 0, "its filter is removed");
    }
    assert.deepEqual(seen, sent);
    assert.deepEqual(errors, []);
  });

  test("through two replicas a reorganisation returns removed logs, and an expired filter is not found", async (t) => {
    const { node, address, transfer } = await startToken(t);
    const { url, admin } = await startRedis(t);
    const { ask } = await startBalancer(t, await startReplicas(t, node.url, url));
    const id = (await ask("eth_newFilter", { address })).result;
    const collected: Log[] = [];
    const collect = async (count: number) => {
      await until(async () => {
        const { result, error } = await ask("eth_getFilterChanges", id);
        assert.equal(error, undefined);
        collected.push(...(result as readonly Log[]));
        return collected.length >= count;
      }, `${count} logs`);
    };
    const sent = [await transfer(1n), await transfer(2n), await transfer(3n)];
    await collect(3);
    assert.deepEqual(
      collected.map(({ transactionHash }) => transactionHash),
      sent,
    );

    await node.call("anvil_reorg", 2, []);
    await node.call("anvil_dropAllTransactions");
    await node.call("evm_mine");
    await collect(5);
    const gone = collected.slice(3);
    assert.deepEqual(
      gone.map(({ removed, blockHash }) => [removed, blockHash]),
      collected.slice(1, 3).map(({ blockHash }) => [true, blockHash]),
    );
    await transfer(4n);
    await collect(6);
    assert.notEqual(collected[5]?.removed, true);

    const [key = ""] = await admin.keys("*:filter2:*");
    assert.ok((await admin.pttl(key)) > 290_000);
    await admin.pexpire(key, 1);
    await until(async () => (await admin.exists(key)) === 0, "it expires");
    for (let replica = 0; replica < 2; replica++) {
      assert.deepEqual((await ask("eth_getFilterChanges", id)).error, NOT_FOUND);
    }
    assert.equal((await ask("eth_uninstallFilter", id)).result, false);
  });

  test("while Redis hangs a poll is an error, no event is lost, and a new filter is local", async (t) => {
    const { node, address, transfer } = await startToken(t);
    const redis = await startRedis(t);
    const replicas = await startReplicas(t, node.url, redis.url);
    const [one, other] = replicas;
    assert.ok(one && other);
    const ask = async ({ url }: Service, method: string, ...params: readonly unknown[]) => rpc(url, method, params);
    const id = (await ask(one, "eth_newFilter", { address })).body.result;

    redis.signal("SIGSTOP");
    const first = await transfer(1n);
    const failed = await ask(one, "eth_getFilterChanges", id);
    assert.deepEqual(
      [failed.status, failed.body.error?.message],
      [503, "the filter's state cannot be read now: poll again"],
    );
    const local = (await ask(one, "eth_newFilter", { address })).body.result;
    const second = await transfer(2n);
    const hashes = async (replica: Service, filter: unknown): Promise<readonly Hex[]> =>
      ((await ask(replica, "eth_getFilterChanges", filter)).body.result as readonly Log[]).map(
        (log) => log.transactionHash,
      );
    let heard: readonly Hex[] = [];
    await until(async () => {
      heard = [...heard, ...(await hashes(one, local))];
      return heard.includes(second);
    }, "the local filter reports");
    assert.equal(heard.filter((hash) => hash === second).length, 1);

    redis.signal("SIGCONT");
    await until(async () => (await ask(other, "eth_getFilterChanges", "0x1")).status === 200, "Redis answers");
    assert.deepEqual((await ask(other, "eth_getFilterChanges", local)).body.error, NOT_FOUND);
    let late: readonly Hex[] = [];
    await until(async () => {
      late = [...late, ...(await hashes(other, id))];
      return late.length >= 2;
    }, "what happened meanwhile");
    assert.deepEqual(late, [first, second]);
  });

  for (const [kind, start] of [
    ["Sentinel", startSentinels],
    ["Cluster", startCluster],
  ] as const) {
    test(`${kind}: polls of many filters through two replicas`, async (t) => {
      const { node, address, transfer } = await startToken(t);
      const { url } = await start(t);
      const { ask } = await startBalancer(t, await startReplicas(t, node.url, url));
      const ids: unknown[] = [];
      for (let at = 0; at < 8; at++) {
        ids.push((await ask("eth_newFilter", { address })).result);
      }
      const hash = await transfer(1n);
      for (const id of ids) {
        const logs: Log[] = [];
        await until(async () => {
          logs.push(...((await ask("eth_getFilterChanges", id)).result as readonly Log[]));
          return logs.length > 0;
        }, "the event");
        assert.deepEqual([logs.map(({ transactionHash }) => transactionHash)], [[hash]]);
        assert.deepEqual((await ask("eth_getFilterChanges", id)).result, []);
      }
    });
  }

  test("a filter of a node is polled at that node through any replica", async (t) => {
    const hashes = ["11", "22"].map((digits) => `0x${digits.repeat(32)}`);
    const nodes = await Promise.all(
      hashes.map((hash) =>
        createFakeNode({
          handlers: {
            eth_newPendingTransactionFilter: () => "0xf1",
            eth_getFilterChanges: ([id]) => (id === "0xf1" ? [hash] : []),
            eth_uninstallFilter: ([id]) => id === "0xf1",
          },
        }),
      ),
    );
    const start = () => createService({ nodes: nodes.map(({ url }) => ({ url })), pending: { mode: "node" } });
    const [one, other] = await Promise.all([start(), start()]);
    t.after(async () => {
      await Promise.all([one.close(), other.close()]);
      await Promise.all(nodes.map((node) => node.close()));
    });
    for (const [index, busy] of nodes.entries()) {
      // Only the node of the filter remains.
      busy.faults.answer = 503;
      busy.faults.methods = ["eth_newPendingTransactionFilter"];
      let id: unknown;
      await until(async () => {
        id = (await rpc(one.url, "eth_newPendingTransactionFilter")).body.result;
        return id !== undefined;
      }, "it is made");
      busy.faults.answer = undefined;
      for (const { url } of [one, other]) {
        assert.deepEqual((await rpc(url, "eth_getFilterChanges", [id])).body.result, [hashes[1 - index]]);
      }
      assert.equal((await rpc(other.url, "eth_uninstallFilter", [id])).body.result, true);
    }
  });

  test("a replica that has just started reports every block since the last poll, or the filter is not found", async (t) => {
    const redis = await startRedis(t);
    const chain = createFakeChain({ height: 500 });
    const node = await createFakeNode({ chain });
    t.after(() => node.close());
    const start = async (): Promise<Service> => {
      const service = await createService(
        { nodes: [{ url: node.url }], pending: { mode: "node" } },
        { cache: { redis: redis.url, redisTimeoutMs: 1_000 } },
      );
      t.after(() => service.close());
      await until(async () => (await rpc(service.url, "eth_getFilterChanges", ["0x1"])).status === 200, "Redis");
      return service;
    };
    const first = await start();
    const newFilter = async (): Promise<unknown> => (await rpc(first.url, "eth_newBlockFilter", [])).body.result;
    const [early, late] = [await newFilter(), await newFilter()];
    chain.mine(60);
    const second = await start();
    const missed = chain.blocks.slice(-60).map(({ hash }) => hash);
    assert.deepEqual((await rpc(second.url, "eth_getFilterChanges", [early])).body.result, missed);
    // More than a replica fills into its block ring by itself.
    chain.mine(1_000);
    const third = await start();
    assert.deepEqual((await rpc(third.url, "eth_getFilterChanges", [late])).body.error, NOT_FOUND);
  });
});
