import assert from "node:assert/strict";
import { mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { checkConfig } from "../../src/cli/check.ts";
import { configSchema } from "../../src/config/schema.ts";
import { metric, rpc } from "../support/clients/rpc.ts";
import { until } from "../support/clients/until.ts";
import { createFakeChain } from "../support/fakes/fakeChain.ts";
import { createFakeNode } from "../support/fakes/fakeNode.ts";
import { createService } from "../support/servers/service.ts";

const HOODI = 560_048;
/** 2026-11-20. */
const NOW_SECONDS = 1_795_132_800;
const CONTRACT = `0x${"cc".repeat(20)}`;
const SIMULATION = [{ blockStateCalls: [{ calls: [{ to: CONTRACT }] }] }, "latest"];
const FROM_NODE = [{ number: "0x1", calls: [], madeBy: "node" }];

const createFile = async (t: TestContext) => {
  const folder = await mkdtemp(join(tmpdir(), "forebay-forks-"));
  t.after(() => rm(folder, { recursive: true }));
  const path = join(folder, "forks.json");
  const write = async (content: unknown) => {
    await writeFile(`${path}.new`, typeof content === "string" ? content : JSON.stringify(content));
    await rename(`${path}.new`, path);
  };
  return { path, write };
};

const times = (values: Readonly<Record<string, number>>) => ({ ethereum: [{ chainId: HOODI, times: values }] });

test("fork times of a file count beside the built-in ones, and changes of the file while forebay runs", async (t) => {
  const file = await createFile(t);
  await file.write(times({ later: NOW_SECONDS + 1_000_000 }));
  const chain = createFakeChain({ chainId: HOODI, startSeconds: NOW_SECONDS });
  const handlers = {
    eth_getCode: () => "0x",
    eth_getTransactionCount: () => "0x0",
    eth_simulateV1: () => FROM_NODE,
  };
  const node = await createFakeNode({ chain, handlers });
  const service = await createService({ nodes: [{ url: node.url }], forksFile: file.path });
  t.after(async () => {
    await service.close();
    await node.close();
  });
  const isFromNode = async () => {
    const { body } = await rpc(service.url, "eth_simulateV1", SIMULATION);
    return JSON.stringify(body.result) === JSON.stringify(FROM_NODE);
  };
  assert.equal(await isFromNode(), false);
  // This version does not know the fork, which is active now.
  await file.write(times({ later: NOW_SECONDS - 1 }));
  await until(isFromNode, "the fork is known, and nodes execute");
  assert.equal(await metric(service.opsUrl, "forebay_rules_unknown"), 1);
  await file.write("no JSON");
  await file.write(times({}));
  await until(async () => !(await isFromNode()), "the fork is gone, and forebay executes");
});

test("the check reports a file that cannot be used", async (t) => {
  const file = await createFile(t);
  const check = async (content: unknown, more: object = {}) => {
    await file.write(content);
    const chain = { name: "hoodi", chainId: HOODI, nodes: [{ url: "http://127.0.0.1:9" }], forksFile: file.path };
    const results = await checkConfig(configSchema.parse({ chains: [{ ...chain, ...more }] }));
    const found = results.find(({ subject }) => subject === "hoodi forksFile");
    return [found?.level, found?.text.replace(file.path, "FILE")];
  };
  assert.deepEqual(await check(times({ amsterdam: NOW_SECONDS })), ["ok", "fork times of FILE are used"]);
  assert.deepEqual(await check(times({}), { forks: "prague" }), ["warn", "it has no effect: `forks` is not `auto`"]);
  assert.deepEqual(await check({ op: [] }, { chainId: 999_999 }), ["warn", "FILE has no fork times of this chain"]);
  assert.deepEqual(await check({ ethereum: [{ chainId: HOODI, times: { amsterdam: "soon" } }] }), [
    "fault",
    `FILE: times of ${HOODI} must be whole numbers by name`,
  ]);
});
