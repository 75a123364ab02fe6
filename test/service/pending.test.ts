import assert from "node:assert/strict";
import { after, test } from "node:test";
import { encodeFunctionData, keccak256 } from "viem";
import { TOKEN_ABI } from "../devnet/token.ts";
import { devAccounts } from "../devnet/traffic.ts";
import { type FeedBlock, startFeedRig } from "../support/servers/feedService.ts";

interface Log {
  readonly blockNumber: string;
  readonly logIndex: string;
  readonly transactionHash: string;
}

const [alice, bob] = devAccounts;
const TO = "0x00000000000000000000000000000000000000cc";

const { devnet, token, ask, result, step, sign, close } = await startFeedRig();
after(close);

test("pending is the block under construction, with a sealed block's fields, and it grows", async () => {
  const first = await step();
  await result("eth_sendRawTransaction", await sign(alice, { to: TO, value: 5n }));
  const second = await step();
  const sealed = await result<FeedBlock>("eth_getBlockByNumber", "latest", false);
  assert.deepEqual(Object.keys(second).sort(), Object.keys(sealed).sort());
  assert.equal(Number(second.number), Number(sealed.number) + 1);
  assert.notEqual(second.hash, first.hash);
  assert.equal(second.parentHash, sealed.hash);
  assert.deepEqual(second.transactions.slice(0, first.transactions.length), first.transactions);
  assert.equal(second.transactions.length, first.transactions.length + 1);
  assert.ok(Number(second.gasUsed) > Number(first.gasUsed));
  for (const [hash, block] of [
    [first.hash, first],
    [second.hash, second],
  ] as const) {
    assert.deepEqual(await result("eth_getBlockByHash", hash, false), block);
  }
  const balanceAt = async (hash: unknown) => BigInt(await result<string>("eth_getBalance", TO, { blockHash: hash }));
  assert.equal(await balanceAt(second.hash), (await balanceAt(first.hash)) + 5n);
  assert.equal(await result("eth_call", { to: TO }, { blockHash: first.hash }), "0x");
});

test("balance, nonce, storage, receipts, transactions and logs are of the same block", async () => {
  const data = encodeFunctionData({ abi: TOKEN_ABI, functionName: "transfer", args: [TO, 7n] });
  const before = BigInt(await result<string>("eth_getBalance", TO, "pending"));
  const hash = await result<string>("eth_sendRawTransaction", await sign(bob, { to: token, data }));
  await result("eth_sendRawTransaction", await sign(alice, { to: TO, value: 3n }));
  const block = await step();
  assert.equal(BigInt(await result<string>("eth_getBalance", TO, "pending")), before + 3n);
  const receipt = await result<Record<string, unknown>>("eth_getTransactionReceipt", hash);
  assert.equal(receipt.blockHash, block.hash);
  assert.equal(receipt.status, "0x1");
  const transaction = await result<Record<string, unknown>>("eth_getTransactionByHash", hash);
  assert.equal(transaction.blockHash, null);
  assert.equal(transaction.blockNumber, block.number);
  const receipts = await result<readonly { transactionHash: string }[]>("eth_getBlockReceipts", "pending");
  assert.deepEqual(
    receipts.map(({ transactionHash }) => transactionHash),
    block.transactions,
  );
  assert.equal(Number(await result("eth_getBlockTransactionCountByNumber", "pending")), block.transactions.length);
  const logs = await result<readonly Log[]>("eth_getLogs", {
    fromBlock: "pending",
    toBlock: "pending",
    address: token,
  });
  assert.deepEqual(
    logs.map(({ transactionHash }) => transactionHash),
    [hash],
  );
  const called = await result<string>(
    "eth_call",
    {
      from: alice?.address,
      to: token,
      data: encodeFunctionData({ abi: TOKEN_ABI, functionName: "balanceOf", args: [TO] }),
    },
    "pending",
  );
  assert.equal(BigInt(called), 7n);
});

test("a batch is answered from one view, and ranges have no gap between sealed and pending blocks", async () => {
  const all = { fromBlock: "earliest", toBlock: "pending", address: token };
  const before = await result<readonly Log[]>("eth_getLogs", all);
  await devnet.sealNow();
  const head = Number(await devnet.rpc("eth_blockNumber"));
  while (Number(await result("eth_blockNumber")) < head) {
    await result("eth_getBlockByNumber", `0x${head.toString(16)}`, false);
  }
  const sealed = await result<readonly Log[]>("eth_getLogs", { ...all, toBlock: "latest" });
  const bare = (logs: readonly Log[]) =>
    logs.map(({ blockNumber, logIndex, transactionHash }) => [blockNumber, logIndex, transactionHash]);
  assert.deepEqual(bare(sealed), bare(before));
});

test("the pending nonce counts submitted transactions before the sequencer shows them", async () => {
  const nonce = Number(await result("eth_getTransactionCount", bob?.address, "pending"));
  await result("eth_sendRawTransaction", await sign(bob, { to: TO, value: 1n }));
  assert.equal(Number(await result("eth_getTransactionCount", bob?.address, "pending")), nonce + 1);
});

test("eth_sendRawTransactionSync returns the pre-confirmed receipt, or code 4 after its timeout", async () => {
  const raw = await sign(alice, { to: TO, value: 2n });
  const waiting = result<Record<string, unknown>>("eth_sendRawTransactionSync", raw);
  let receipt: Record<string, unknown> | undefined;
  waiting.then((found) => {
    receipt = found;
  });
  while (receipt === undefined) {
    await step();
  }
  assert.equal(receipt.status, "0x1");
  const again = await ask("eth_sendRawTransactionSync", raw);
  assert.deepEqual(again.body.result, receipt, "it is pre-confirmed already");
  await devnet.sealNow();
  const sealedReceipt = await devnet.rpc("eth_getTransactionReceipt", receipt.transactionHash);
  const resent = await ask("eth_sendRawTransactionSync", raw);
  assert.equal(resent.body.error, undefined, JSON.stringify(resent.body.error));
  const { blockHash } = sealedReceipt as { readonly blockHash: string };
  assert.equal(Reflect.get(Object(resent.body.result), "blockHash"), blockHash, "it is sealed already");
  await step();
  const lateRaw = await sign(alice, { to: TO, value: 2n });
  const late = await ask("eth_sendRawTransactionSync", lateRaw, 1);
  assert.deepEqual([late.body.error?.code, Reflect.get(Object(late.body.error), "data")], [4, keccak256(lateRaw)]);
  for (const invalid of [60_000, -1, "soon", null]) {
    const answered = await ask("eth_sendRawTransactionSync", raw, invalid);
    assert.equal(Reflect.get(Object(answered.body.result), "blockHash"), blockHash, "the default");
  }
});

test("estimates, access lists and simulations are executed on the pending block", async () => {
  const call = {
    from: alice?.address,
    to: token,
    data: encodeFunctionData({ abi: TOKEN_ABI, functionName: "transfer", args: [TO, 1n] }),
  };
  assert.ok(Number(await result("eth_estimateGas", call, "pending")) > 21_000);
  const { accessList } = await result<{ accessList: readonly unknown[] }>("eth_createAccessList", call, "pending");
  assert.equal(accessList.length, 1);
  const pending = await result<FeedBlock>("eth_getBlockByNumber", "pending", false);
  const [simulated] = await result<readonly FeedBlock[]>(
    "eth_simulateV1",
    { blockStateCalls: [{ calls: [call] }] },
    "pending",
  );
  assert.equal(simulated?.number, pending.number);
  assert.equal(simulated?.parentHash, pending.parentHash);
});

test("eth_getFilterLogs returns the same logs as eth_getLogs, pending ones too", async () => {
  const data = encodeFunctionData({ abi: TOKEN_ABI, functionName: "transfer", args: [TO, 2n] });
  const hash = await result<string>("eth_sendRawTransaction", await sign(bob, { to: token, data }));
  await step();
  for (const filter of [{ fromBlock: "pending" }, { fromBlock: "latest", toBlock: "pending" }]) {
    const logs = await result<readonly Log[]>("eth_getLogs", filter);
    assert.ok(logs.some(({ transactionHash }) => transactionHash === hash));
    const id = await result<string>("eth_newFilter", filter);
    assert.deepEqual(await result("eth_getFilterLogs", id), logs);
  }
});

test("a filter with an inverted range is rejected when it is created", async () => {
  const { body } = await ask("eth_newFilter", { fromBlock: "0x3", toBlock: "0x2" });
  assert.deepEqual(body.error, { code: -32602, message: "invalid block range params" });
});

test("a call that fails at pending has the mode header, executed locally or by the node", async () => {
  const failing = { to: token, data: "0xdeadbeef" };
  for (const method of ["eth_call", "eth_estimateGas"]) {
    const { body, headers } = await ask(method, failing, "pending");
    assert.equal(body.error?.code, 3, method);
    assert.equal(headers.get("x-forebay-pending"), "live");
    assert.equal((await ask(method, failing, "latest")).headers.get("x-forebay-pending"), null);
  }
});

test("logs by the pending block's hash are its logs, with the mode header", async () => {
  const { hash } = await result<FeedBlock>("eth_getBlockByNumber", "pending", false);
  const byHash = await ask("eth_getLogs", { blockHash: hash });
  assert.deepEqual(byHash.body.result, await result("eth_getLogs", { fromBlock: "pending" }));
  assert.equal(byHash.headers.get("x-forebay-pending"), "live");
});
