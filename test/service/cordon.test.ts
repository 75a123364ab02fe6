import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { cordonNode } from "../../src/cli/cordon.ts";
import { configSchema } from "../../src/config/schema.ts";
import { metric, rpc } from "../support/clients/rpc.ts";
import { createFakeChain } from "../support/fakes/fakeChain.ts";
import { createFakeNode, type FakeNode } from "../support/fakes/fakeNode.ts";
import { createService, type Service } from "../support/servers/service.ts";

const HEIGHT = 100;
const TOKEN = "0123456789abcdef";

interface Rig {
  readonly first: FakeNode;
  readonly second: FakeNode;
  readonly service: Service;
}

const start = async (t: TestContext, opsToken: string | undefined): Promise<Rig> => {
  const chain = createFakeChain({ height: HEIGHT });
  const [first, second] = await Promise.all([createFakeNode({ chain }), createFakeNode({ chain })]);
  const service = await createService(
    {
      nodes: [
        { name: "first", url: first.url },
        { name: "second", url: second.url, priority: 1 },
      ],
    },
    { cache: { memoryBytes: 0 }, server: { ...(opsToken !== undefined && { opsToken }) } },
  );
  t.after(async () => {
    await service.close();
    await Promise.all([first.close(), second.close()]);
  });
  while ((await metric(service.opsUrl, "forebay_upstream_head")) < HEIGHT * 2) {
    // A node without a head gets no reads.
  }
  return { first, second, service };
};

let nextAddress = 1;
const readBalance = async ({ url }: Service): Promise<unknown> => {
  const { body } = await rpc(url, "eth_getBalance", [`0x${(nextAddress++).toString(16).padStart(40, "0")}`, "0x20"]);
  return body.result ?? body.error?.message;
};

const post = async ({ opsUrl }: Service, path: string, token = TOKEN) => {
  const response = await fetch(opsUrl + path, { method: "POST", headers: { authorization: `Bearer ${token}` } });
  return { status: response.status, text: await response.text() };
};

const reasonsOf = async ({ opsUrl }: Service): Promise<unknown> =>
  JSON.parse(await (await fetch(`${opsUrl}/readyz`)).text()).chains[0].nodes;

test("a cordoned node gets no reads, is shown as such, and gets reads again after uncordon", async (t) => {
  const { first, second, service } = await start(t, TOKEN);
  const { status, text } = await post(service, "/nodes/chain/first/cordon");
  assert.equal(status, 200);
  assert.match(text, /this machine only, until a reload or a restart/);
  const before = first.count("eth_getBalance");
  assert.equal(await readBalance(service), "0x20");
  assert.equal(first.count("eth_getBalance"), before);
  assert.equal(await metric(service.opsUrl, "forebay_upstream_cordoned", 'node="first"'), 1);
  assert.deepEqual(await reasonsOf(service), { first: "it is cordoned" });

  const last = await post(service, "/nodes/chain/second/cordon");
  assert.deepEqual(last, { status: 409, text: "no other node of the chain can be used: add ?force to cordon it\n" });
  assert.equal(await readBalance(service), "0x20", "the last node is still used");
  assert.equal((await post(service, "/nodes/chain/second/cordon?force")).status, 200);
  assert.equal((await post(service, "/nodes/chain/second/cordon")).status, 200, "it is cordoned already");
  assert.equal(await readBalance(service), "no node can be used: they are cordoned");

  await post(service, "/nodes/chain/first/uncordon");
  const seen = second.count("eth_getBalance");
  assert.equal(await readBalance(service), "0x20");
  assert.deepEqual([first.count("eth_getBalance"), second.count("eth_getBalance")], [before + 1, seen]);
});

test("a node is the last one, too, if the others cannot be reached", async (t) => {
  const { second, service } = await start(t, TOKEN);
  second.closeSockets();
  await second.close();
  await post(service, "/nodes/chain/first/cordon?force");
  assert.equal(await readBalance(service), "no node can be reached");
  await post(service, "/nodes/chain/first/uncordon");
  assert.equal((await post(service, "/nodes/chain/first/cordon")).status, 409);
  assert.equal((await post(service, "/nodes/chain/second/cordon")).status, 200, "one that is not used can be cordoned");
});

test("a reload forgets which nodes are cordoned, and says so", async (t) => {
  const { service } = await start(t, TOKEN);
  await post(service, "/nodes/chain/first/cordon");
  const warn = t.mock.method(service.telemetry.log, "warn");
  await service.reload({ cache: { memoryBytes: 0 }, server: { opsToken: TOKEN } });
  assert.ok(warn.mock.calls.some(({ arguments: [, text] }) => /forgets that the node was cordoned/.test(String(text))));
  assert.equal(await reasonsOf(service), undefined);
});

test("cordon needs the token, and without server.opsToken there is no such path", async (t) => {
  const { service } = await start(t, TOKEN);
  assert.equal((await post(service, "/nodes/chain/first/cordon", "0123456789abcdeX")).status, 401);
  assert.equal((await post(service, "/nodes/chain/none/cordon")).status, 404);
  assert.equal((await fetch(`${service.opsUrl}/nodes/chain/first/cordon`)).status, 405);
  const headers = { authorization: `Bearer ${TOKEN}` };
  assert.ok(!(await (await fetch(`${service.opsUrl}/config`, { headers })).text()).includes(TOKEN));

  const { service: without } = await start(t, undefined);
  assert.equal((await post(without, "/nodes/chain/first/cordon")).status, 405);
  assert.equal((await fetch(`${without.opsUrl}/nodes/chain/first/cordon`)).status, 404);
});

test("forebay cordon sends the request of the configuration, and rejects with the reason", async (t) => {
  const { first, service } = await start(t, TOKEN);
  const { port } = new URL(service.opsUrl);
  const config = configSchema.parse({
    chains: [{ name: "chain", nodes: [{ url: first.url }] }],
    server: { opsPort: Number(port), opsToken: TOKEN },
  });
  assert.match(await cordonNode(config, "cordon", ["chain", "first"]), /"cordoned":true/);
  assert.deepEqual(await reasonsOf(service), { first: "it is cordoned" });
  await assert.rejects(cordonNode(config, "cordon", ["chain", "second"]), /HTTP 409: no other node .* --force/);
  assert.match(await cordonNode(config, "cordon", ["chain", "second"], true), /"cordoned":true/);
  assert.match(await cordonNode(config, "uncordon", ["chain", "second"]), /"cordoned":false/);
  assert.match(await cordonNode(config, "uncordon", ["chain", "first"]), /"cordoned":false/);
  await assert.rejects(cordonNode(config, "cordon", ["chain", "none"]), /HTTP 404: no such chain or node/);
  await assert.rejects(cordonNode(config, "cordon", ["chain"]), /CHAIN NODE/);
  const { opsToken, ...server } = config.server;
  await assert.rejects(cordonNode({ ...config, server }, "cordon", ["chain", "first"]), /server.opsToken is not set/);
  assert.equal(opsToken, TOKEN);
});

test("/config and /usage need the token where one is set, and metrics and health do not", async (t) => {
  const { service } = await start(t, TOKEN);
  const statusOf = async (path: string, token?: string): Promise<number> => {
    const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
    return (await fetch(`${service.opsUrl}${path}`, { headers })).status;
  };
  for (const path of ["/config", "/usage", "/usage?top=1", "/config?a"]) {
    assert.deepEqual(
      [await statusOf(path), await statusOf(path, "wrong"), await statusOf(path, TOKEN)],
      [401, 401, 200],
    );
  }
  for (const path of ["/metrics", "/healthz", "/readyz"]) {
    assert.equal(await statusOf(path), 200, path);
  }
  const { service: without } = await start(t, undefined);
  assert.equal((await fetch(`${without.opsUrl}/config`)).status, 200);
});
