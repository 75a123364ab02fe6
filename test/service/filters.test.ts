import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { createDevnet, type Devnet } from "../devnet/devnet.ts";
import { startTraffic } from "../devnet/traffic.ts";
import { rpc } from "../support/clients/rpc.ts";
import { createService, type Service } from "../support/servers/service.ts";

let devnet: Devnet;
let services: readonly Service[];
let token: string;

before(async () => {
  devnet = await createDevnet({ manual: true });
  const chain = { nodes: [{ url: devnet.anvilUrl, wsUrl: devnet.anvilWsUrl }], pending: { mode: "node" as const } };
  services = await Promise.all([createService(chain), createService(chain)]);
});
after(async () => {
  await Promise.all((services ?? []).map((service) => service.close()));
  await devnet?.close();
});

const ask = async (method: string, ...params: readonly unknown[]) =>
  (await rpc(services[0]?.url ?? "", method, params)).body;

/** Seals blocks with traffic. The first message of a block has no transactions of clients, the second has all of them. */
const traffic = async (transactions: number): Promise<void> => {
  const running = await startTraffic({ url: devnet.url, chainId: devnet.chainId, rate: 200, kinds: ["token"] });
  token = running.token;
  while (running.sent < transactions) {
    await devnet.step();
    await devnet.step();
    await devnet.sealNow();
  }
  await running.stop();
};

/** Waits until forebay has the block: a poll of the test may be ahead of the push. */
const headIs = async (number: number): Promise<void> => {
  while (Number((await ask("eth_blockNumber")).result) < number) {
    await ask("eth_getBlockByNumber", `0x${number.toString(16)}`, false);
  }
};

test("a log filter and a block filter return each event once, until they are uninstalled", async () => {
  const logFilter = (await ask("eth_newFilter", { fromBlock: "latest" })).result;
  const blockFilter = (await ask("eth_newBlockFilter")).result;
  const first = Number((await ask("eth_blockNumber")).result);
  await traffic(20);
  const head = Number(await devnet.rpc("eth_blockNumber"));
  await headIs(head);
  const logs = (await ask("eth_getFilterChanges", logFilter)).result as readonly {
    blockHash: string;
    logIndex: string;
  }[];
  const expected = await devnet.rpc("eth_getLogs", {
    fromBlock: `0x${(first + 1).toString(16)}`,
    toBlock: `0x${head.toString(16)}`,
  });
  assert.deepEqual(
    logs.map(({ blockHash, logIndex }) => [blockHash, logIndex]),
    (expected as typeof logs).map(({ blockHash, logIndex }) => [blockHash, logIndex]),
  );
  assert.ok(logs.length >= 20);
  const blocks = (await ask("eth_getFilterChanges", blockFilter)).result as readonly string[];
  assert.equal(blocks.length, head - first);
  assert.deepEqual((await ask("eth_getFilterChanges", logFilter)).result, []);
  assert.equal((await ask("eth_uninstallFilter", logFilter)).result, true);
  assert.equal((await ask("eth_uninstallFilter", logFilter)).result, false);
  assert.deepEqual((await ask("eth_getFilterChanges", logFilter)).error, { code: -32000, message: "filter not found" });
});

test("without Redis another replica does not have the filter", async () => {
  const filter = (await ask("eth_newFilter", { address: token })).result;
  const other = await rpc(services[1]?.url ?? "", "eth_getFilterLogs", [filter]);
  assert.deepEqual(other.body.error, { code: -32000, message: "filter not found" });
});

test("an invalid filter is rejected with its parameter's name", async () => {
  assert.match((await ask("eth_newFilter", { address: "0x1" })).error?.message ?? "", /address/);
});
