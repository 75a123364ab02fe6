import assert from "node:assert/strict";
import { after, test } from "node:test";
import type { Status } from "../../src/admin/status.ts";
import { callOverNewConnection } from "../support/clients/freshConnection.ts";
import { type HeadOrder, readHeadOrder } from "../support/clients/headOrder.ts";
import { askUntilRefused } from "../support/clients/reconnecting.ts";
import { metric, rpc } from "../support/clients/rpc.ts";
import { connectSocket } from "../support/clients/socketClient.ts";
import { until } from "../support/clients/until.ts";
import { createFakeChain } from "../support/fakes/fakeChain.ts";
import { createFakeNode } from "../support/fakes/fakeNode.ts";
import { startProcesses } from "../support/servers/processes.ts";

/** They span a dozen blocks. */
const READS = 200;

/** Forebay with two processes on a chain whose heads are pushed. */
const startOnPushedChain = async (t: { after(end: () => Promise<void>): void }) => {
  const chain = createFakeChain();
  const node = await createFakeNode({ chain, handlers: { custom_echo: (params) => params } });
  t.after(() => node.close());
  const nodes = [{ url: node.url, wsUrl: node.wsUrl }];
  const forebay = await startProcesses(t, { chains: [{ name: "chain", nodes }] });
  const first = setInterval(() => chain.mine(), 50);
  await until(() => forebay.lines.some(({ msg }) => msg === "new heads are pushed"), "heads are pushed");
  clearInterval(first);
  return { chain, node, forebay };
};

const ends: (() => Promise<void>)[] = [];
after(async () => {
  for (const end of ends.toReversed()) {
    await end();
  }
});
/** For tests that leave it as it is. */
const shared = await startOnPushedChain({ after: (end) => ends.push(end) });

test("two processes serve the heads of the main process, cached reads and forwarded calls", async () => {
  const { chain, forebay } = shared;
  const ask = (method: string, params: readonly unknown[] = []) => callOverNewConnection(forebay.url, method, params);
  const headNumber = async (): Promise<bigint> => BigInt(String(await ask("eth_blockNumber")));

  const { number, hash } = chain.latest;
  for (let connection = 0; connection < 6; connection++) {
    assert.equal(await headNumber(), number);
    const block = await ask("eth_getBlockByNumber", ["latest", false]);
    assert.equal(Object(block).hash, hash);
    assert.deepEqual(await ask("custom_echo", [connection]), [connection]);
  }
  assert.equal((await forebay.servingPids()).length, 2);

  chain.mine();
  await until(async () => (await headNumber()) === chain.latest.number, "the new block is served");
  for (let connection = 0; connection < 6; connection++) {
    assert.equal(await headNumber(), chain.latest.number);
  }
});

test("no client sees an older block than before over changing connections, also if a process is stopped or killed", async (t) => {
  const { chain, forebay } = await startOnPushedChain(t);
  const mining = setInterval(() => chain.mine(), 20);
  t.after(() => clearInterval(mining));
  const check = async (reads: number): Promise<HeadOrder> => {
    const order = await readHeadOrder({ url: forebay.url, reads, readers: 4 });
    assert.deepEqual(order.older, []);
    return order;
  };

  assert.equal((await check(READS)).failed, 0);

  const [stopped, killed] = await forebay.servingPids();
  assert.ok(stopped !== undefined && killed !== undefined);
  const before = BigInt(String(await callOverNewConnection(forebay.url, "eth_blockNumber")));
  process.kill(stopped, "SIGSTOP");
  await until(async () => {
    // The stopped process gets one connection, and accepts no further one.
    const heads = [1, 2].map(() => callOverNewConnection(forebay.url, "eth_blockNumber"));
    return BigInt(String(await Promise.any(heads))) > before + 5n;
  }, "the other process has new heads");
  process.kill(stopped, "SIGCONT");
  assert.equal((await check(READS)).failed, 0);

  const order = check(READS);
  process.kill(killed, "SIGKILL");
  const { failed } = await order;
  assert.ok(failed <= 4, `${failed} reads failed: only the connections of the killed process may`);
  await until(async () => (await forebay.servingPids()).length === 2, "the process is replaced");
  await until(async () => (await metric(forebay.opsUrl, "forebay_processes ")) === 2, "the new process listens");
  assert.equal((await check(READS)).failed, 0);
  assert.equal(await metric(forebay.opsUrl, "forebay_process_restarts_total"), 1);
});

test("clients without a load balancer get a response or a refused connection when all processes end", async (t) => {
  const node = await createFakeNode();
  t.after(() => node.close());
  const forebay = await startProcesses(t, { chains: [{ name: "main", nodes: [{ url: node.url }] }] });
  let answered = 0;
  const outcomes = askUntilRefused(Number(new URL(forebay.url).port), 40, () => {
    answered++;
    if (answered === 400) {
      forebay.signal("SIGTERM");
    }
  });
  assert.equal(await forebay.ended, 0);
  assert.deepEqual(await outcomes, new Set(["ECONNREFUSED"]));
});

test("a reload and a drain act on all processes, and no request fails", async (t) => {
  const { node, forebay } = await startOnPushedChain(t);
  const nodes = [{ url: node.url, wsUrl: node.wsUrl, name: "renamed" }];
  const reads = readHeadOrder({ url: forebay.url, reads: 500, readers: 2 });
  await forebay.reconfigure({ chains: [{ name: "chain", nodes }], access: { deny: ["eth_chainId"] } });
  await until(() => forebay.lines.some(({ msg }) => msg === "configuration applied"), "the configuration is applied");
  for (let connection = 0; connection < 6; connection++) {
    await assert.rejects(callOverNewConnection(forebay.url, "eth_chainId"), /not allowed here/);
  }
  assert.equal((await reads).failed, 0);

  node.faults.methods = ["slow_read"];
  node.faults.answer = "hang";
  const asked = node.asked("slow_read");
  const slow = rpc(forebay.url, "slow_read");
  await asked;
  forebay.signal("SIGTERM");
  await until(() => forebay.lines.some(({ msg }) => msg === "draining"), "it drains");
  node.closeSockets();
  await node.close();
  assert.equal((await slow).status, 503);
  assert.equal(await forebay.ended, 0);
});

test("one ops port has the metrics of all processes, and the status page their sum", async () => {
  const { forebay } = shared;
  const count = () => metric(forebay.opsUrl, "forebay_requests_total", 'method="eth_blockNumber"', 'outcome="ok"');
  const before = await count();
  const { reads } = await readHeadOrder({ url: forebay.url, reads: 100, readers: 2 });
  assert.equal((await count()) - before, reads);
  const responses = await Promise.all(
    [1, 2].map((process) => metric(forebay.opsUrl, "forebay_process_responses_total", `process="${process}"`)),
  );
  assert.ok(Math.min(...responses) >= 40, `each process has its part: ${responses}`);
  assert.equal(await metric(forebay.opsUrl, "forebay_processes "), 2);
  assert.ok((await metric(forebay.opsUrl, "forebay_view_round_seconds_count")) > 0);
  assert.equal(await metric(forebay.opsUrl, "forebay_upstream_breaker_open"), 0);
  const status: Status = JSON.parse(await (await fetch(new URL("/status.json", forebay.url))).text());
  const [shown] = status.chains;
  assert.deepEqual(shown?.heads, { agreed: 0, linked: 1 });
  assert.ok(shown.proofs && shown.requestsPerSecond >= 0 && (shown.nodes[0]?.units ?? 0) > 0, JSON.stringify(shown));
  assert.equal(status.chains[0]?.latest?.number, Number((await rpc(forebay.url, "eth_blockNumber")).body.result));
});

test("filters without Redis and WebSockets work through any process", async (t) => {
  const { chain, forebay } = shared;
  const call = (method: string, ...params: readonly unknown[]) => callOverNewConnection(forebay.url, method, params);
  const filter = await call("eth_newBlockFilter");
  const sockets = await Promise.all([1, 2, 3, 4].map(() => connectSocket(forebay.url)));
  t.after(() => Promise.all(sockets.map((socket) => socket.close())));
  const lists = await Promise.all(sockets.map((socket) => socket.subscribe("newHeads")));
  chain.mine();
  const { hash } = chain.latest;
  for (const list of lists) {
    await until(() => list.some((head) => Object(head).hash === hash), "the new head is sent");
  }
  assert.deepEqual(await call("eth_getFilterChanges", filter), [hash]);
  for (let connection = 0; connection < 4; connection++) {
    assert.deepEqual(await call("eth_getFilterChanges", filter), []);
  }
  assert.equal(await call("eth_uninstallFilter", filter), true);
  await assert.rejects(call("eth_getFilterChanges", filter), /filter not found/);
});
