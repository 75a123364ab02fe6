import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { createDevnet, type Devnet } from "../devnet/devnet.ts";
import { devAccounts, startTraffic } from "../devnet/traffic.ts";
import { resultText, rpc } from "../support/clients/rpc.ts";
import { createService, type Service } from "../support/servers/service.ts";

let devnet: Devnet;
let service: Service;
let addresses: readonly string[];
let token: string;

/** Some blocks with transfers, tokens, creations and reverts. After them, the chain has no new blocks. */
before(async () => {
  devnet = await createDevnet({ manual: true });
  const traffic = await startTraffic({ url: devnet.url, chainId: devnet.chainId, rate: 200 });
  while (traffic.sent < 60) {
    await devnet.step();
    await devnet.step();
    await devnet.sealNow();
  }
  await traffic.stop();
  token = traffic.token;
  await devnet.sealNow();
  service = await createService({
    nodes: [{ url: devnet.anvilUrl }],
    pending: { mode: "node" },
    allowNamespaces: ["anvil_nodeInfo"],
  });
  addresses = devAccounts.slice(0, 4).map(({ address }) => address);
});
after(async () => {
  await service?.close();
  await devnet?.close();
});

const same = async (method: string, params: readonly unknown[]) => {
  const [ours, node] = await Promise.all([rpc(service.url, method, params), rpc(devnet.anvilUrl, method, params)]);
  assert.equal(ours.status, 200);
  assert.equal(resultText(ours.text), resultText(node.text), `${method} ${JSON.stringify(params)}`);
  return ours;
};

const head = async (): Promise<number> => Number((await rpc(devnet.anvilUrl, "eth_blockNumber")).body.result);

test("blocks of every number and tag are the node's, byte for byte", async () => {
  for (let number = 0; number <= (await head()); number++) {
    for (const full of [true, false]) {
      await same("eth_getBlockByNumber", [`0x${number.toString(16)}`, full]);
    }
  }
  for (const tag of ["latest", "earliest"]) {
    await same("eth_getBlockByNumber", [tag, false]);
  }
});

test("nonces, balances and storage are the node's at every block", async () => {
  for (let number = 0; number <= (await head()); number++) {
    for (const address of addresses) {
      const block = `0x${number.toString(16)}`;
      await same("eth_getTransactionCount", [address, block]);
      await same("eth_getBalance", [address, block]);
      await same("eth_getStorageAt", [address, "0x0", block]);
    }
  }
});

test("logs are the node's, except for blockTimestamp", async () => {
  const withoutTime = (logs: unknown) => {
    assert.ok(Array.isArray(logs));
    return logs.map(({ blockTimestamp: _, ...log }: Record<string, unknown>) => log);
  };
  const filter = { fromBlock: "earliest", toBlock: "latest" };
  const [ours, node] = await Promise.all([
    rpc(service.url, "eth_getLogs", [filter]),
    rpc(devnet.anvilUrl, "eth_getLogs", [filter]),
  ]);
  assert.deepEqual(withoutTime(ours.body.result), withoutTime(node.body.result));
  assert.ok(Array.isArray(ours.body.result) && ours.body.result.length > 0);
});

test("receipts and transactions are the node's", async () => {
  const { body } = await rpc(devnet.anvilUrl, "eth_getBlockByNumber", ["latest", false]);
  const { transactions } = body.result as { transactions: readonly string[] };
  for (const hash of transactions) {
    await same("eth_getTransactionByHash", [hash]);
    await same("eth_getTransactionReceipt", [hash]);
  }
});

test("parameters that geth accepts are accepted, and the node gets a form that it accepts", async () => {
  const [from] = addresses;
  const to = token.replace("0x", "0X");
  const balanceOf = `0x70a08231${from?.slice(2).padStart(64, "0")}`;
  const strict = [{ to: token, input: balanceOf }, "latest"];
  const pairs: readonly (readonly [string, readonly unknown[], readonly unknown[]])[] = [
    ["eth_call", [{ to, input: balanceOf, data: "0xa9cc4718", value: "" }, "unsafe"], strict],
    ["eth_call", [{ to, data: balanceOf.replace("0x", "0X"), value: "0X0" }, { blockNumber: "unsafe" }], strict],
    ["eth_call", [{ from, to: from, data: "", value: "" }], [{ from, to: from }, "latest"]],
    ["eth_feeHistory", ["3", "unsafe", null], ["0x3", "latest", []]],
    ["eth_feeHistory", [3, "0X5"], ["0x3", "0x5", []]],
    ["eth_getProof", [from, null, "unsafe"], [from, [], "latest"]],
    ["eth_getBlockByNumber", ["unsafe", null], ["latest", false]],
    ["eth_getBalance", [from?.replace("0x", "0X"), "unsafe"], [from, "latest"]],
    ["eth_getBlockReceipts", ["unsafe"], ["latest"]],
    ["debug_getRawHeader", ["unsafe"], ["latest"]],
  ];
  for (const [method, given, canonical] of pairs) {
    const [ours, node] = await Promise.all([rpc(service.url, method, given), rpc(devnet.anvilUrl, method, canonical)]);
    assert.equal(resultText(ours.text), resultText(node.text), `${method} ${JSON.stringify(given)}`);
  }
  const logsOf = async (filter: object) => (await rpc(service.url, "eth_getLogs", [filter])).body.result;
  const expected = await logsOf({ fromBlock: "earliest", toBlock: "latest" });
  assert.ok(Array.isArray(expected) && expected.length > 0);
  assert.deepEqual(await logsOf({ fromBlock: "0X0", toBlock: "unsafe" }), expected);
  const filter = (await rpc(service.url, "eth_newFilter", [{ fromBlock: "earliest", toBlock: "unsafe" }])).body.result;
  assert.deepEqual((await rpc(service.url, "eth_getFilterLogs", [filter])).body.result, expected);
  const simulate = async (block: string) =>
    (await rpc(service.url, "eth_simulateV1", [{ blockStateCalls: [{ calls: [{ to }] }] }, block])).body.result;
  assert.ok(await simulate("latest"));
  assert.deepEqual(await simulate("unsafe"), await simulate("latest"));
});

test("an error of the node is returned with its code and message", async () => {
  // fail(): reverts with a reason.
  const params = [{ to: token, data: "0xa9cc4718" }, "latest"];
  const [ours, node] = await Promise.all([
    rpc(service.url, "eth_call", params),
    rpc(devnet.anvilUrl, "eth_call", params),
  ]);
  assert.ok(node.body.error);
  assert.deepEqual(ours.body.error, node.body.error);
});

test("an unknown method is forwarded unchanged", async () => {
  await same("anvil_nodeInfo", []);
});
