import assert from "node:assert/strict";
import { mock, test } from "node:test";
import { formatHeader } from "../../src/ethereum/blockHeader.ts";
import { createBloom } from "../../src/ethereum/bloom.ts";
import { formatData, ZERO_ADDRESS, ZERO_HASH } from "../../src/ethereum/hex.ts";
import { orderedTrieRoot } from "../../src/ethereum/orderedTrie.ts";
import { createCall } from "../../src/jsonrpc/call.ts";
import { Evidence } from "../../src/verification/evidence.ts";
import { LogVerifier } from "../../src/verification/logVerifier.ts";
import { Verifier } from "../../src/verification/verifier.ts";
import { ANY, createSplit, range, readLogs } from "../logs/askLogs.ts";
import { chainOf } from "../logs/chainOf.ts";
import { fakeHeads, fakeTopic, plainScan } from "../logs/fakeChain.ts";
import { createFakeLogNode } from "../logs/fakeLogNode.ts";
import { evidenceNodes } from "../support/builders/evidenceNodes.ts";
import { createContext, createRequest } from "../support/builders/request.ts";
import { silent } from "../support/builders/silent.ts";

const BLOCK = 9;

test("logs of an old block without readable receipts must be in the bloom of its header", async () => {
  const chain = chainOf(400);
  const reads: string[] = [];
  const telemetry = silent();
  mock.method(telemetry.log, "warn", assert.fail);
  mock.method(telemetry.metrics.verifySkipped, "inc", assert.fail);
  const evidence = new Evidence(
    { chain: "test", nodes: evidenceNodes("fake"), off: [], onWrongAnswer: assert.fail },
    telemetry,
  );
  const pool = { check: () => assert.fail("a thread for a small response") };
  const responses = new Verifier("full", evidence, pool);
  const verifier = new LogVerifier(responses, {
    areReceiptsCheap: true,
    receiptsOf: async () => undefined,
    headerOf: async (hash) => {
      reads.push(hash);
      const block = chain.find((each) => each.hash === hash);
      return block && { hash, logsBloom: formatData(block.logsBloom) };
    },
  });
  const context = createContext({ heads: fakeHeads(chain, { finalized: 300, ring: 100 }) });
  const ask = async (change?: (log: object) => object) => {
    const node = createFakeLogNode({
      chain,
      ...(change && { change: (logs) => logs.map((log) => change(Object(log))) }),
    });
    const split = createSplit([node], { verifier });
    return readLogs(await split.request(ANY, { blockHash: chain[BLOCK]?.hash ?? "0x" }, context));
  };

  const right = plainScan(chain, ANY, range(BLOCK, BLOCK));
  assert.ok(Array.isArray(right) && right.length > 0);
  assert.deepEqual(await ask(), right);
  // The second read is answered from the cache.
  assert.deepEqual(new Set(reads), new Set([chain[BLOCK]?.hash]));
  await assert.rejects(
    ask((log) => ({ ...log, topics: [fakeTopic(999)] })),
    /failed verification \(logs\)/,
  );
  await assert.rejects(
    ask((log) => ({ ...log, address: `0x${"99".repeat(20)}` })),
    /failed verification \(logs\)/,
  );
});

test("logs are not compared with a header that another node only stated", async () => {
  const chain = chainOf(400);
  const block = chain[BLOCK];
  assert.ok(block);
  const evidence = new Evidence(
    { chain: "test", nodes: evidenceNodes("liar", "fake"), off: [], onWrongAnswer: () => undefined },
    silent(),
  );
  // Headers of the chain have a field that forebay does not know.
  const call = createCall("eth_getBlockReceipts", [block.hash]);
  evidence.evaluate({ check: "header", outcome: "uncomputable" }, { node: { name: "fake" }, call });
  const responses = new Verifier("full", evidence, { check: () => assert.fail() });
  const context = createContext({ heads: fakeHeads(chain, { finalized: 300, ring: 100 }) });
  const stated = formatHeader(
    {
      ...{ parentHash: ZERO_HASH, miner: ZERO_ADDRESS, stateRoot: ZERO_HASH, mixHash: ZERO_HASH, extraData: "0x" },
      ...{ number: block.number, gasLimit: 30_000_000n, gasUsed: 0n, timestamp: block.timestamp, baseFeePerGas: 7n },
      ...{ transactionsRoot: orderedTrieRoot([]), receiptsRoot: orderedTrieRoot([]), logsBloom: createBloom() },
    },
    block.hash,
  );
  const json = { ...stated, newField: "0x1", transactions: [] };
  const liar = { name: "liar", send: async () => Buffer.from(JSON.stringify(json)) };
  await responses.verify({ node: liar, call, request: createRequest(call), context }, Buffer.from("[]"));
  const verifier = new LogVerifier(responses, {
    ...{ areReceiptsCheap: false, receiptsOf: async () => undefined, headerOf: async () => undefined },
  });
  const split = createSplit([createFakeLogNode({ chain })], { verifier });
  const logs = await readLogs(await split.request(ANY, range(0, 20), context));
  assert.deepEqual(logs, plainScan(chain, ANY, range(0, 20)));
});
