import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { encodeFunctionData, getContractAddress } from "viem";
import WebSocket from "ws";
import { type BlockHeader, EMPTY_REQUESTS_HASH, hashHeader } from "../../src/ethereum/blockHeader.ts";
import { bloomOfLogs } from "../../src/ethereum/bloom.ts";
import { type Hash, type Hex, parseData } from "../../src/ethereum/hex.ts";
import { orderedTrieRoot } from "../../src/ethereum/orderedTrie.ts";
import { parseTransaction } from "../../src/ethereum/parseTransaction.ts";
import { encodeReceipt, type LogEntry } from "../../src/ethereum/receipt.ts";
import { createDevnet, type Devnet } from "./devnet.ts";
import type { Flashblock, FlashblockBase } from "./flashblock.ts";
import { headerOf, type NodeBlock } from "./nodeBlock.ts";
import { TOKEN_ABI, TOKEN_BYTECODE } from "./token.ts";
import { devAccounts } from "./traffic.ts";

interface NodeReceipt {
  transactionHash: Hash;
  type: Hex;
  status: Hex;
  cumulativeGasUsed: Hex;
  logs: LogEntry[];
  depositNonce?: Hex;
}

const listen = async (url: string | undefined): Promise<WebSocket> => {
  assert.ok(url);
  const socket = new WebSocket(url);
  await once(socket, "open");
  return socket;
};

const send = async (devnet: Devnet, body: unknown): Promise<unknown> => {
  const headers = { "content-type": "application/json" };
  const response = await fetch(devnet.url, { method: "POST", headers, body: JSON.stringify(body) });
  return response.json();
};

const sendRaw = (devnet: Devnet, raw: Hex) =>
  send(devnet, { jsonrpc: "2.0", id: 1, method: "eth_sendRawTransaction", params: [raw] });

const [alice, bob] = devAccounts;
assert.ok(alice && bob);
/** A creation that runs until its gas is used. */
const LONG = { data: "0x5b5f56", gas: 16_000_000n } as const;
const LONG_TRANSACTIONS = 3;
const FEES = { maxFeePerGas: 20n * 10n ** 9n, maxPriorityFeePerGas: 1n, gas: 500_000n } as const;

const signed = (devnet: Devnet, nonce: number, transaction: { to?: Hex; data?: Hex; value?: bigint } = {}) =>
  alice.signTransaction({ type: "eip1559", chainId: devnet.chainId, nonce, ...FEES, to: bob.address, ...transaction });

/** Header of a block after a message, from the feed alone (docs/reference/flashblocks.md, Block hash). */
const headerAfter = (base: FlashblockBase, message: Flashblock, raws: readonly Uint8Array[]): BlockHeader => ({
  parentHash: base.parent_hash,
  miner: base.fee_recipient,
  stateRoot: message.diff.state_root,
  transactionsRoot: orderedTrieRoot(raws),
  receiptsRoot: message.diff.receipts_root,
  logsBloom: parseData(message.diff.logs_bloom),
  number: BigInt(base.block_number),
  gasLimit: BigInt(base.gas_limit),
  gasUsed: BigInt(message.diff.gas_used),
  timestamp: BigInt(base.timestamp),
  extraData: base.extra_data,
  mixHash: base.prev_randao,
  baseFeePerGas: BigInt(base.base_fee_per_gas),
  withdrawalsRoot: message.diff.withdrawals_root,
  blobGasUsed: BigInt(message.diff.blob_gas_used),
  excessBlobGas: 0n,
  parentBeaconBlockRoot: base.parent_beacon_block_root,
  requestsHash: EMPTY_REQUESTS_HASH,
});

/** Computes the correct receipts root of a sealed block: depositNonce is one less than the node returns. */
const rightReceiptsRoot = async (devnet: Devnet, number: Hex): Promise<Hash> => {
  const receipts = (await devnet.rpc("eth_getBlockReceipts", number)) as NodeReceipt[];
  return orderedTrieRoot(
    receipts.map((receipt) =>
      encodeReceipt({
        type: Number(receipt.type),
        status: receipt.status === "0x1",
        cumulativeGasUsed: BigInt(receipt.cumulativeGasUsed),
        logs: receipt.logs,
        logsBloom: bloomOfLogs(receipt.logs),
        ...(receipt.depositNonce === undefined
          ? {}
          : { depositNonce: BigInt(receipt.depositNonce) - 1n, depositReceiptVersion: 1n }),
      }),
    ),
  );
};

/** Compares the messages of one block with each other and with the sealed block. */
const assertBlock = async (devnet: Devnet, messages: readonly Flashblock[], sealed: NodeBlock): Promise<void> => {
  const base = messages[0]?.base;
  assert.ok(base);
  const raws: Uint8Array[] = [];
  messages.forEach((message, index) => {
    assert.equal(message.index, index);
    assert.equal(message.payload_id, messages[0]?.payload_id);
    assert.equal(message.base === undefined, index > 0);
    raws.push(...message.diff.transactions.map(parseData));
    assert.equal(hashHeader(headerAfter(base, message, raws)), message.diff.block_hash);
  });
  const last = messages.at(-1);
  assert.deepEqual(
    raws.map((raw) => parseTransaction(raw).hash),
    sealed.transactions,
  );
  assert.equal(last?.diff.gas_used, sealed.gasUsed);
  assert.equal(last?.diff.logs_bloom, sealed.logsBloom);
  assert.equal(base.timestamp, sealed.timestamp);
  assert.equal(base.parent_hash, sealed.parentHash);
  assert.equal(last?.diff.receipts_root, await rightReceiptsRoot(devnet, sealed.number));
  assert.equal(hashHeader(headerOf(sealed)), sealed.hash);
};

test("messages built by hand are the block that is sealed", async () => {
  await using devnet = await createDevnet({ manual: true });
  const messages: Flashblock[] = [];
  devnet.events.on("message", (message) => messages.push(message));
  const token = getContractAddress({ from: alice.address, nonce: 0n });
  const transfer = encodeFunctionData({ abi: TOKEN_ABI, functionName: "transfer", args: [bob.address, 0n] });
  const fail = encodeFunctionData({ abi: TOKEN_ABI, functionName: "fail" });
  const creation: Hex = `${TOKEN_BYTECODE}${"40".padStart(64, "0")}${"0".repeat(128)}`;

  await devnet.step();
  await sendRaw(
    devnet,
    await alice.signTransaction({
      type: "eip1559",
      chainId: devnet.chainId,
      nonce: 0,
      ...FEES,
      gas: 3_000_000n,
      data: creation,
    }),
  );
  await sendRaw(devnet, await signed(devnet, 1, { to: token, data: transfer }));
  const second = await devnet.step();
  assert.equal(second.diff.transactions.length, 2);
  // A transaction after a gap in nonces waits until the gap is filled.
  await sendRaw(devnet, await signed(devnet, 3, { value: 1n }));
  const third = await devnet.step();
  assert.deepEqual(third.diff.transactions, []);
  assert.equal(third.diff.block_hash, second.diff.block_hash);
  await sendRaw(devnet, await signed(devnet, 2, { to: token, data: fail }));
  assert.equal((await devnet.step()).diff.transactions.length, 2);
  const { block } = await devnet.sealNow();
  await assertBlock(devnet, messages, block);

  const first = parseTransaction(parseData(messages[0]?.diff.transactions[0] ?? "0x"));
  assert.equal(first.type, 0x7e);
  const receipts = (await devnet.rpc("eth_getBlockReceipts", block.number)) as NodeReceipt[];
  assert.deepEqual(
    receipts.map(({ status }) => status),
    ["0x1", "0x1", "0x1", "0x0", "0x1"],
  );
  assert.deepEqual(devnet.failures, []);
});

test("a transaction on the node is not replaced, a waiting one may be, and raw deposits do not reach the node", async () => {
  await using devnet = await createDevnet({ manual: true });
  const first = await signed(devnet, 0, { value: 1n });
  await devnet.step();
  await sendRaw(devnet, first);
  assert.deepEqual(await sendRaw(devnet, await signed(devnet, 0, { value: 2n })), {
    jsonrpc: "2.0",
    id: 1,
    error: { code: -32000, message: "replacement transaction underpriced" },
  });
  await devnet.step();
  assert.deepEqual(await sendRaw(devnet, first), {
    jsonrpc: "2.0",
    id: 1,
    error: { code: -32000, message: "already known" },
  });
  const { error } = (await sendRaw(
    devnet,
    await alice.signTransaction({
      type: "eip1559",
      chainId: devnet.chainId,
      nonce: 0,
      ...FEES,
      maxFeePerGas: 10n ** 12n,
      value: 3n,
      to: bob.address,
    }),
  )) as { error: { message: string } };
  assert.equal(error.message, "nonce too low: next nonce 1, tx nonce 0");
  await sendRaw(devnet, await signed(devnet, 1));
  const { block } = await devnet.sealNow();
  const call = (id: number, method: string, ...params: unknown[]) => ({ jsonrpc: "2.0", id, method, params });
  const answers = (await send(devnet, [
    call(1, "eth_getRawTransactionByHash", block.transactions[0]),
    call(2, "eth_getTransactionCount", alice.address, "pending"),
    call(3, "eth_chainId"),
    call(4, "evm_mine"),
  ])) as { result?: unknown; error?: { code: number } }[];
  assert.equal(String(answers[0]?.result).slice(0, 4), "0x7e");
  assert.deepEqual([answers[1]?.result, answers[2]?.result, answers[3]?.error?.code], ["0x2", "0x385", -32601]);
});

test("faults: a dropped message is a gap, a repeated one is sent twice", async () => {
  await using devnet = await createDevnet({ manual: true, generation: "f" });
  const socket = await listen(devnet.feedUrl);
  const indexes: number[] = [];
  socket.on("message", (data) => indexes.push(JSON.parse(data.toString()).index));
  await devnet.step();
  devnet.faults.drop();
  await devnet.step();
  devnet.faults.repeat();
  await devnet.step();
  devnet.faults.alter((message) => ({ ...message, index: 9 }));
  await devnet.step();
  while (indexes.length < 4) {
    await once(socket, "message");
  }
  assert.deepEqual(indexes, [0, 2, 2, 9]);
  devnet.faults.delay(20);
  await devnet.step();
  await devnet.step();
  while (indexes.length < 6) {
    await once(socket, "message");
  }
  assert.deepEqual(indexes.slice(4), [4, 5]);
  const closed = once(socket, "close");
  devnet.faults.disconnect();
  await closed;
});

test("a reorganisation replaces blocks, and a node that is started again has the same chain", async () => {
  await using devnet = await createDevnet({ manual: true });
  const one = await devnet.sealNow();
  await devnet.step();
  await sendRaw(devnet, await signed(devnet, 0));
  await devnet.step();
  const two = await devnet.sealNow();
  const heldBack = await signed(devnet, 0, { value: 7n });
  await devnet.step();
  await devnet.reorg(1);
  const replaced = (await devnet.rpc("eth_getBlockByNumber", "0x2", false)) as NodeBlock;
  assert.notEqual(replaced.hash, two.hash);
  assert.equal(replaced.parentHash, one.hash);
  await sendRaw(devnet, heldBack);
  const again = await devnet.step();
  assert.equal(again.base?.parent_hash, replaced.hash);
  await devnet.step();
  await devnet.stopNode();
  await assert.rejects(devnet.rpc("eth_blockNumber"));
  await devnet.startNode();
  assert.equal(((await devnet.rpc("eth_getBlockByNumber", "0x1", false)) as NodeBlock).hash, one.hash);
  assert.equal(((await devnet.rpc("eth_getBlockByNumber", "latest", false)) as NodeBlock).hash, replaced.hash);
  // Transactions that were sent to the node are in the pool again.
  await devnet.step();
  assert.deepEqual((await devnet.step()).diff.transactions, [heldBack]);
  await devnet.sealNow();
  assert.deepEqual(devnet.failures, []);
});

test("while a block is sealed, the state of the block before stays", async () => {
  await using devnet = await createDevnet({ manual: true });
  const { hash } = (await devnet.rpc("eth_getBlockByNumber", "latest", false)) as NodeBlock;
  const params = [bob.address, { blockHash: hash }];
  const read = () => send(devnet, { jsonrpc: "2.0", id: 1, method: "eth_getBalance", params });
  const before = await read();
  await sendRaw(devnet, await signed(devnet, 0));
  await sendRaw(devnet, await signed(devnet, 1, { value: 1n }));
  for (let nonce = 2; nonce < 2 + LONG_TRANSACTIONS; nonce++) {
    const transaction = { type: "eip1559", chainId: devnet.chainId, nonce, ...FEES, ...LONG } as const;
    await sendRaw(devnet, await alice.signTransaction(transaction));
  }
  await devnet.step();
  await devnet.step();
  let isSealed = false;
  const sealing = devnet.sealNow().finally(() => {
    isSealed = true;
  });
  while (!isSealed) {
    assert.deepEqual(await read(), before);
  }
  await sealing;
});
