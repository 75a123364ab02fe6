import assert from "node:assert/strict";
import { after, test } from "node:test";
import { encodeFunctionData } from "viem";
import type { Flashblock } from "../devnet/flashblock.ts";
import { TOKEN_ABI } from "../devnet/token.ts";
import { devAccounts } from "../devnet/traffic.ts";
import { connectSocket } from "../support/clients/socketClient.ts";
import { until } from "../support/clients/until.ts";
import { startFeedRig } from "../support/servers/feedService.ts";

/** A feed without receipts, and a pending block that does not verify: its logs are not known before it is sealed. */
const [alice] = devAccounts;
const TO = "0x00000000000000000000000000000000000000cc";
const LOGS_UNKNOWN = /^the logs of pending block \d+ are not known: it is not executed, and the feed sent no receipts$/;
const RECEIPTS_UNKNOWN =
  /^the receipts of pending block \d+ are not known: it is not executed, and the feed sent none$/;

let transaction: string;
let hash: unknown;

const { devnet, service, token, ask, sign, close } = await startFeedRig();
after(close);

const withWrongGas = (message: Flashblock): Flashblock => ({ ...message, diff: { ...message.diff, gas_used: "0x1" } });

/** Sends a transfer of a token, and its block with a wrong gas, so that nothing of the block is verified. */
const sendUnverified = async (): Promise<void> => {
  devnet.faults.alter(withWrongGas);
  await devnet.step();
  const data = encodeFunctionData({ abi: TOKEN_ABI, functionName: "transfer", args: [TO, 7n] });
  const raw = await sign(alice, { to: token, data });
  transaction = String((await ask("eth_sendRawTransaction", raw)).body.result);
  devnet.faults.alter(withWrongGas);
  const { diff } = await devnet.step();
  hash = diff.block_hash;
  await until(async () => {
    const { body, headers } = await ask("eth_getBlockByNumber", "pending", false);
    const block = body.result as { hash: string; transactions: readonly string[] };
    return headers.get("x-forebay-pending") === "unverified" && block.transactions.includes(transaction);
  }, "the block is shown as unverified");
};

test("logs and receipts of a pending block that is not executed are an error, or complete, and never less", async () => {
  const socket = await connectSocket(service.url);
  const sent = await socket.subscribe("pendingLogs", { address: token });
  const filter = (await ask("eth_newFilter", { toBlock: "pending", address: token })).body.result;
  await sendUnverified();
  for (const range of [{ fromBlock: "latest", toBlock: "pending" }, { fromBlock: "pending" }]) {
    const { body, headers } = await ask("eth_getLogs", range);
    assert.equal(body.error?.code, -32000, JSON.stringify(range));
    assert.match(body.error.message, LOGS_UNKNOWN);
    assert.equal(headers.get("x-forebay-pending"), "unverified");
  }
  const byHash = (await ask("eth_getLogs", { blockHash: hash })).body;
  assert.match(byHash.error?.message ?? "", /unknown block/, "the execution contradicts the message: the node answers");
  assert.match((await ask("eth_getFilterLogs", filter)).body.error?.message ?? "", LOGS_UNKNOWN);
  assert.match((await ask("eth_getBlockReceipts", "pending")).body.error?.message ?? "", RECEIPTS_UNKNOWN);
  assert.equal((await ask("eth_getTransactionReceipt", transaction)).body.result, null);
  assert.deepEqual((await ask("eth_getFilterChanges", filter)).body.result, [], "the block is not sealed");

  await devnet.sealNow();
  await until(
    async () => (await ask("eth_getTransactionReceipt", transaction)).body.result !== null,
    "the transaction is sealed",
  );
  const logs = (await ask("eth_getFilterChanges", filter)).body.result as readonly { transactionHash: string }[];
  assert.ok(logs.some(({ transactionHash }) => transactionHash === transaction));
  await socket.atLeast(sent, 1);
  assert.deepEqual(
    sent.map((log) => Reflect.get(Object(log), "transactionHash")),
    [transaction],
  );
  await socket.close();
});
