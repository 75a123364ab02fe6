import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { metric, rpc } from "../support/clients/rpc.ts";
import { createFakeChain } from "../support/fakes/fakeChain.ts";
import { createFakeNode, type FakeNode } from "../support/fakes/fakeNode.ts";
import { createService, type Service } from "../support/servers/service.ts";

const OWNER = `0x${"1".repeat(40)}`;

let nodes: readonly FakeNode[];
let service: Service;

before(async () => {
  const chain = createFakeChain({ height: 100 });
  const handlers = { eth_getBalance: () => "0x1", eth_getCode: () => "0x" };
  nodes = await Promise.all([createFakeNode({ chain, handlers }), createFakeNode({ chain, handlers })]);
  service = await createService(
    { nodes: nodes.map(({ url }) => ({ url })), state: { follow: false, units: { eth_getCode: 7 } } },
    { server: { corsOrigins: "*" }, usage: { prices: "calls", units: { eth_getBalance: 5 } } },
  );
});
after(async () => {
  await service?.close();
  await Promise.all(nodes.map((node) => node.close()));
});

const read = (name: string, ...labels: readonly string[]): Promise<number> =>
  metric(service.opsUrl, `forebay_${name}`, ...labels);

const spent = async (): Promise<number> =>
  (await read("upstream_units_total", 'node="node1"')) + (await read("upstream_units_total", 'node="node2"'));

test("a call to a node costs its units, and a call that the cache answers saves them", async () => {
  const before = await spent();
  const calls = async () => {
    const counts = ["node1", "node2"].flatMap((node) =>
      ["eth_getBalance", "eth_getCode"].map((method) =>
        read("upstream_calls_total", `node="${node}"`, `method="${method}"`),
      ),
    );
    return (await Promise.all(counts)).reduce((sum, count) => sum + count, 0);
  };
  assert.equal(await calls(), 0);
  for (const method of ["eth_getBalance", "eth_getCode"]) {
    await rpc(service.url, method, [OWNER, "0x10"]);
    await rpc(service.url, method, [OWNER, "0x10"]);
    await rpc(service.url, method, [OWNER, "0x10"]);
  }
  assert.equal(await calls(), 2);
  // The same node is polled for heads, for one unit a call.
  assert.ok((await spent()) - before >= 5 + 7);
  assert.equal(await read("saved_calls_total"), 4);
  assert.equal(await read("saved_units_total"), 2 * 5 + 2 * 7);
});

test("a client that asks for it learns what its request has spent at nodes, and what it has saved", async () => {
  const wants = { "x-forebay-units": "1" };
  const unitsOf = async (
    method: string,
    params: readonly unknown[],
    headers: Readonly<Record<string, string>> = wants,
  ) => (await rpc(service.url, method, params, headers)).headers.get("x-forebay-units");
  const missed = await unitsOf("eth_getBalance", [OWNER, "0x20"]);
  // A slow node can make forebay ask the other one too.
  assert.match(missed ?? "", /^spent=(5|10), saved=0$/);
  assert.equal(await unitsOf("eth_getBalance", [OWNER, "0x20"]), "spent=0, saved=5");
  assert.equal(await unitsOf("eth_getBalance", [OWNER, "0x20"], {}), null);
  // forebay refuses the call, so that it would cost nothing elsewhere.
  assert.equal(await unitsOf("admin_peers", []), "spent=0, saved=0");
  const items = ["0x20", "0x20", "0x21"].map((block, id) => ({
    ...{ jsonrpc: "2.0", id, method: "eth_getBalance" },
    params: [OWNER, block],
  }));
  const response = await fetch(service.url, {
    method: "POST",
    headers: { "content-type": "application/json", origin: "https://wallet.example", ...wants },
    body: JSON.stringify(items),
  });
  assert.match(response.headers.get("x-forebay-units") ?? "", /^spent=(5, saved=10|10, saved=5)$/);
  assert.match(response.headers.get("access-control-expose-headers") ?? "", /x-forebay-units/);
});

test("a retry is counted by the failure before", async () => {
  assert.equal(await read("upstream_retries_total", 'reason="rateLimited"'), 0);
  for (const { faults } of nodes) {
    faults.methods = ["eth_getBalance"];
    faults.answer = 429;
  }
  await rpc(service.url, "eth_getBalance", [OWNER, "0x11"]);
  assert.ok((await read("upstream_retries_total", 'reason="rateLimited"')) > 0);
});

test("the process reports its versions, CPU, heap and open files", async () => {
  assert.equal(await read("build_info", `node_version="${process.version}"`), 1);
  for (const name of ["cpu_seconds_total", "heap_bytes", "open_files", "max_open_files"]) {
    assert.ok((await read(name)) > 0, name);
  }
});
