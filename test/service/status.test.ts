import assert from "node:assert/strict";
import { availableParallelism } from "node:os";
import { after, before, test } from "node:test";
import type { Status } from "../../src/admin/status.ts";
import { RETRY_RULES } from "../../src/core/retryPolicy.ts";
import { rpc } from "../support/clients/rpc.ts";
import { until } from "../support/clients/until.ts";
import { createFakeNode, type FakeNode } from "../support/fakes/fakeNode.ts";
import { createService, type Service } from "../support/servers/service.ts";

const SECRET = "s3cret";
let node: FakeNode;
let service: Service;

before(async () => {
  node = await createFakeNode();
  service = await createService({
    name: "main",
    forks: "prague",
    nodes: [{ name: "ours", url: `${node.url}${SECRET}`, headers: { "x-key": SECRET } }],
  });
});
after(async () => {
  await service?.close();
  await node?.close();
});

const get = async (path: string, accept: string) => {
  const response = await fetch(service.url + path, { headers: { accept } });
  const { headers, status } = response;
  const policy = headers.get("content-security-policy");
  return { type: headers.get("content-type"), policy, text: await response.text(), status };
};

test("GET / returns a page to browsers and JSON to other clients", async () => {
  const page = await get("/", "text/html,application/xhtml+xml,*/*;q=0.8");
  assert.equal(page.type, "text/html; charset=utf-8");
  assert.match(page.policy ?? "", /frame-ancestors 'none'/);
  assert.match(page.text, /^<!doctype html>/);
  const plain = await get("/", "*/*");
  assert.equal(plain.type, "application/json");
  assert.equal(JSON.parse(plain.text).chains[0].chainId, node.chain.chainId);
});

test("status.json shows heads, node names and traffic, and no secret", async () => {
  for (let at = 0; at < 4; at++) {
    await rpc(service.url, "eth_getBlockByNumber", ["0x1", false]);
  }
  const { text, status } = await get("/status.json", "application/json");
  assert.equal(status, 200);
  const { chains, draining }: Status = JSON.parse(text);
  const [chain] = chains;
  assert.ok(chain);
  assert.equal(draining, false);
  assert.equal(chain.name, "main");
  assert.equal(chain.chainId, node.chain.chainId);
  assert.equal(chain.latest?.number, node.chain.blocks.length - 1);
  const [first] = chain.nodes;
  assert.ok(first && chain.nodes.length === 1);
  const { latencyMs, units, ...shown } = first;
  assert.deepEqual(shown, {
    ...{ name: "ours", head: node.chain.blocks.length - 1, lagBlocks: 0, breakerOpen: false, headsIgnored: false },
    ...{ share: 1, errors: 0, lastError: null },
  });
  assert.ok((latencyMs ?? 0) > 0 && units > 0, `${latencyMs} ms, ${units} units`);
  assert.deepEqual(chain.heads, { agreed: 0, linked: 1 });
  const { proven, checked, stated } = chain.proofs ?? {};
  assert.equal((proven ?? 0) + (checked ?? 0) + (stated ?? 0), 1);
  assert.ok((chain.hitRatio ?? 0) >= 0.5);
  // The first of the four reads of one block needs the node.
  assert.ok(chain.saved.calls >= 2 && chain.saved.units >= chain.saved.calls, JSON.stringify(chain.saved));
  assert.ok(!text.includes(SECRET) && !text.includes("127.0.0.1"));
});

test("status.json has the errors of a node, and the usage of the day", async () => {
  const readStatus = async (): Promise<Status> => JSON.parse((await get("/status.json", "application/json")).text);
  node.faults.methods = ["eth_gasPrice"];
  node.faults.answer = 503;
  await rpc(service.url, "eth_gasPrice");
  node.faults.answer = undefined;
  await until(async () => {
    const [{ errors = 0, lastError = null } = {}] = (await readStatus()).chains[0]?.nodes ?? [];
    return errors > 0 && lastError?.text === RETRY_RULES.unreachable.meaning && lastError.ageSeconds >= 0;
  }, "the error is shown");
  const { today } = await readStatus();
  assert.ok(today);
  assert.match(today.day, /^\d{4}-\d\d-\d\d$/);
  assert.ok(today.spent.units > 0 && today.spent.calls > 0, JSON.stringify(today));
});

test("with the status switched off, only the info page is served", async () => {
  const quiet = await createService({ nodes: [{ url: node.url }] }, { server: { statusPage: false } });
  const ask = async (path: string) => {
    const response = await fetch(quiet.url + path, { headers: { accept: "text/html" } });
    await response.arrayBuffer();
    return [response.status, response.headers.get("content-type")];
  };
  assert.deepEqual(await ask("/"), [200, "application/json"]);
  assert.equal((await ask("/status.json"))[0], 404);
  await quiet.close();
});

test("every closed set of labels has its series before anything happens", async () => {
  const text = await (await fetch(`${service.opsUrl}/metrics`)).text();
  for (const series of [
    'access_refused_total{reason="rate"} 0',
    'config_reloads_total{outcome="refused"} 0',
    "limiter_failures_total 0",
    'upstream_breaker_open{chain="main",node="ours"} 0',
    'upstream_requests_total{chain="main",node="ours",outcome="timeout"} 0',
    'requests_total{chain="main",method="other",outcome="limited"} 0',
    'simulate_runs_total{chain="main",kind="call",outcome="error"} 0',
    'reorg_depth_blocks_count{chain="main"} 0',
    "workers 0",
    `workers_max{chain="main"} ${Math.min(4, Math.max(1, availableParallelism() - 1))}`,
  ]) {
    assert.ok(text.includes(`forebay_${series}\n`), series);
  }
});
