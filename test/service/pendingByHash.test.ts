import assert from "node:assert/strict";
import { after, test } from "node:test";
import { encodeFunctionData } from "viem";
import { TOKEN_ABI } from "../devnet/token.ts";
import { devAccounts } from "../devnet/traffic.ts";
import { metric, rpc } from "../support/clients/rpc.ts";
import { until } from "../support/clients/until.ts";
import { startLyingNode } from "../support/fakes/lyingNode.ts";
import { createFeedService, type FeedBlock, startFeedRig } from "../support/servers/feedService.ts";

const [alice, bob] = devAccounts;
const TO = "0x00000000000000000000000000000000000000cc";

const { devnet, service, token, result, step, sign, close } = await startFeedRig();
after(close);

test("by the hash of a shown pending block, state reads, calls and receipts are those of its prefix, on another replica too", async (t) => {
  assert.ok(alice);
  const replica = await createFeedService(devnet);
  t.after(() => replica.close());
  // The other replica has joined inside a block, and shows the next one.
  await devnet.sealNow();
  const first = await step();
  const before = BigInt(await result<string>("eth_getBalance", TO, "pending"));
  const nonce = Number(await result("eth_getTransactionCount", alice.address, "pending"));
  const data = encodeFunctionData({ abi: TOKEN_ABI, functionName: "transfer", args: [TO, 7n] });
  const held = encodeFunctionData({ abi: TOKEN_ABI, functionName: "balanceOf", args: [TO] });
  const tokens = BigInt(await result<string>("eth_call", { to: token, data: held }, "pending"));
  await result("eth_sendRawTransaction", await sign(alice, { to: TO, value: 9n }));
  await result("eth_sendRawTransaction", await sign(bob, { to: token, data }));
  const second = await step();
  const slot = `0x${"0".repeat(64)}`;
  const expected = [
    [first.hash, before, nonce, tokens],
    [second.hash, before + 9n, nonce + 1, tokens + 7n],
  ] as const;
  const check = async (url: string): Promise<void> => {
    const at = async (method: string, ...params: readonly unknown[]): Promise<unknown> => {
      const { body, headers } = await rpc(url, method, params);
      assert.equal(body.error, undefined, `${method}: ${JSON.stringify(body.error)}`);
      assert.ok(headers.get("x-forebay-pending"), method);
      return body.result;
    };
    for (const [hash, balance, count, held7] of expected) {
      assert.equal(BigInt(String(await at("eth_getBalance", TO, hash))), balance);
      assert.equal(BigInt(String(await at("eth_getBalance", TO, { blockHash: hash }))), balance);
      assert.equal(Number(await at("eth_getTransactionCount", alice.address, { blockHash: hash })), count);
      assert.equal(BigInt(String(await at("eth_call", { to: token, data: held }, { blockHash: hash }))), held7);
      assert.match(String(await at("eth_getStorageAt", token, slot, hash)), /^0x[0-9a-f]{64}$/);
      assert.match(String(await at("eth_getCode", token, hash)), /^0x[0-9a-f]{2,}$/);
      const calls = [{ blockStateCalls: [{ calls: [{ to: token, data: held }] }] }, hash];
      const [simulated] = (await at("eth_simulateV1", ...calls)) as readonly { calls: { returnData: string }[] }[];
      assert.equal(BigInt(simulated?.calls[0]?.returnData ?? 0), held7);
      const receipts = (await at("eth_getBlockReceipts", hash)) as readonly { blockHash: string }[];
      assert.ok(receipts.length > 0 && receipts.every(({ blockHash }) => blockHash === hash));
    }
  };
  await check(service.url);
  await until(
    async () => (await rpc(replica.url, "eth_getBlockByHash", [second.hash, false])).body.result !== null,
    "the other replica has executed the message",
  );
  await check(replica.url);
  const { body } = await rpc(service.url, "eth_getBalance", [TO, { blockHash: second.hash, requireCanonical: true }]);
  assert.ok(body.error, "a pending block is not canonical");
  await devnet.sealNow();
  await check(service.url);
  const unknown = await rpc(service.url, "eth_getBalance", [TO, `0x${"77".repeat(32)}`]);
  assert.ok(unknown.body.error);
});

const METHODS = ["eth_getTransactionReceipt", "eth_getTransactionByHash"];

/** Sends a transaction, and waits until forebay shows it as pending. Returns its hash. */
const sendUntilShown = async (url: string) => {
  // It has joined inside a block, and shows the next one.
  await devnet.step();
  await devnet.sealNow();
  await devnet.step();
  const hash = await result("eth_sendRawTransaction", await sign(alice, { to: TO, value: 1n }));
  await devnet.step();
  await until(async () => {
    const { body } = await rpc(url, "eth_getBlockByNumber", ["pending", false]);
    return (body.result as FeedBlock).transactions.includes(hash);
  }, "the transaction is shown");
  return hash;
};

for (const method of METHODS) {
  test(`${method}: a transaction that was pending is not null once its block is sealed, although a machine lags`, async (t) => {
    const node = await startLyingNode(t, devnet.url);
    const behind = await createFeedService(devnet, node.url);
    t.after(() => behind.close());
    const read = async () => (await rpc(behind.url, method, [hash])).body.result as { blockHash?: string } | null;
    const hash = await sendUntilShown(behind.url);
    let count = 0;
    node.lies = [{ name: "null", methods: [method], result: (result) => (count++ === 0 ? null : result) }];
    const { hash: sealed } = await devnet.sealNow();
    await until(async () => {
      const seen = await read();
      assert.ok(seen, "it was shown before");
      return seen.blockHash === sealed && count > 0;
    }, "the sealed block is served");
  });
}

test("null for a pending transaction that was dropped is asked of the node once a head", async (t) => {
  const node = await startLyingNode(t, devnet.url);
  const dropping = await createFeedService(devnet, node.url);
  t.after(() => dropping.close());
  const hash = await sendUntilShown(dropping.url);
  let count = 0;
  const onResult = (result: unknown): unknown => {
    // forebay reads other transactions itself.
    count += result === null ? 1 : 0;
    return result;
  };
  node.lies = [{ name: "counted", methods: METHODS, result: onResult }];
  // The devnet cannot go on after another block than its own: no test may follow.
  await devnet.rpc("anvil_dropTransaction", hash);
  await devnet.rpc("evm_mine");
  await until(
    async () => (await metric(dropping.opsUrl, "forebay_pending_dropped_total")) > 0,
    "the transaction is known to be dropped",
  );
  for (const method of METHODS) {
    count = 0;
    const { body } = await rpc(dropping.url, method, [hash]);
    assert.equal(body.result, null);
    assert.equal(count, 1, method);
  }
});
