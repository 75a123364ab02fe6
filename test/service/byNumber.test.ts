import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { keccak256 } from "viem";
import { createFakeChain } from "../support/fakeChain.ts";
import { createFakeNode, FakeError, type FakeNode, type FakeNodeOptions } from "../support/fakeNode.ts";
import { rpc } from "../support/rpc.ts";
import { createService } from "../support/service.ts";
import { settled } from "../support/settled.ts";

const ADDRESS = `0x${"11".repeat(20)}`;
const RAW = `0x02${"c0".repeat(10)}` as const;

const start = async (t: TestContext, handlers: FakeNodeOptions["handlers"] = {}, nodes = 1) => {
  const chain = createFakeChain({ height: 20 });
  const options = { chain, handlers: { eth_getBlockTransactionCountByHash: () => "0x0", ...handlers } };
  const fakes = await Promise.all(Array.from({ length: nodes }, () => createFakeNode(options)));
  const service = await createService({
    nodes: fakes.map(({ url }) => ({ url })),
    blockTimeMs: 10_000,
    pending: { mode: "node" },
  });
  t.after(async () => {
    await Promise.all(fakes.map((node) => node.close()));
    await service.close();
  });
  await settled(service);
  return { chain, fakes, ask: (method: string, params: readonly unknown[]) => rpc(service.url, method, params) };
};

/** What a node says that takes a number here and nothing else. */
const numberOnly = (result: unknown, position: number) => (params: readonly unknown[]) => {
  if (typeof params[position] === "object") {
    throw new FakeError(-32_602, `invalid argument ${position}: json: cannot unmarshal object into Go value`);
  }
  return result;
};

test("a node that knows a block's hash for some methods only is asked the others by number", async (t) => {
  const { fakes, ask } = await start(t, {
    eth_getBlockReceipts: numberOnly([], 0),
    eth_getProof: numberOnly({ address: ADDRESS }, 2),
    debug_getRawBlock: numberOnly("0xc0", 0),
    // Its twin by hash is missing.
    eth_getHeaderByNumber: () => ({ number: "0x14" }),
  });
  const reads: readonly (readonly [string, readonly unknown[], unknown])[] = [
    ["eth_getBlockReceipts", ["latest"], []],
    ["eth_getProof", [ADDRESS, [], "latest"], { address: ADDRESS }],
    ["debug_getRawBlock", ["latest"], "0xc0"],
    ["eth_getHeaderByNumber", ["latest"], { number: "0x14" }],
  ];
  for (const [method, params, result] of reads) assert.deepEqual((await ask(method, params)).body.result, result);
  const before = fakes.map((node) => node.count(...reads.map(([method]) => method), "eth_getHeaderByHash"));
  for (const [method, params, result] of reads) assert.deepEqual((await ask(method, params)).body.result, result);
  const after = fakes.map((node) => node.count(...reads.map(([method]) => method), "eth_getHeaderByHash"));
  assert.deepEqual(after, [(before[0] ?? 0) + reads.length], "the form that it refused is not tried again");
  // State is still asked by hash, and kept.
  await ask("eth_getBalance", [ADDRESS, "latest"]);
  assert.match((await ask("eth_getBalance", [ADDRESS, "latest"])).headers.get("cache-status") ?? "", /hit/);
});

test("a caller's wrong parameters do not make a node one that cannot be asked by hash", async (t) => {
  const { fakes, ask } = await start(t, {
    eth_call: ([transaction]) => {
      if (JSON.stringify(transaction).includes("0xbad0")) throw new FakeError(-32_602, "invalid value");
      return "0x01";
    },
  });
  const call = (value: string) => ask("eth_call", [{ to: ADDRESS, value }, "latest"]);
  assert.equal((await call("0xbad0")).body.error?.code, -32_602);
  assert.equal((await call("0x1")).body.result, "0x01");
  assert.match((await call("0x1")).headers.get("cache-status") ?? "", /hit/);
  assert.equal(fakes[0]?.count("eth_call"), 3);
});

test("what is read by number at one block does not wait for what is read at another", async (t) => {
  const { chain, fakes, ask } = await start(t);
  const [node] = fakes as [FakeNode];
  Object.assign(node.faults, { refusesBlockHash: true });
  await ask("eth_getStorageAt", [ADDRESS, "0x0", "0x14"]);
  Object.assign(node.faults, { answer: "hang", methods: ["eth_getBlockByNumber"] });
  const hanging = node.asked("eth_getBlockByNumber");
  ask("eth_getStorageAt", [ADDRESS, "0x0", "0x14"]).catch(() => undefined);
  await hanging;
  node.faults.answer = undefined;
  const startedMs = performance.now();
  assert.equal((await ask("eth_getStorageAt", [ADDRESS, "0x0", "0x13"])).body.result, chain.blocks[19]?.hash);
  assert.ok(performance.now() - startedMs < 2_000);
});

test("who polls for a transaction that was sent through here costs each node one question and one reading", async (t) => {
  const { fakes, ask } = await start(t, {}, 2);
  await ask("eth_sendRawTransaction", [RAW]);
  const counts = () =>
    fakes.map((node) => [node.count("eth_getTransactionReceipt"), node.count("eth_getBlockByNumber")]);
  const before = counts();
  assert.equal((await ask("eth_getTransactionReceipt", [keccak256(RAW)])).body.result, null);
  assert.deepEqual(
    counts(),
    before.map(([receipts = 0, blocks = 0]) => [receipts + 1, blocks + 1]),
  );
});
