import assert from "node:assert/strict";
import { test } from "node:test";
import { formatData } from "../../src/ethereum/hex.ts";
import { Evidence } from "../../src/verification/evidence.ts";
import { LogVerifier } from "../../src/verification/logVerifier.ts";
import { createVerifier } from "../../src/verification/verifier.ts";
import { ANY, createSplit, range, readLogs } from "../logs/askLogs.ts";
import { chainOf } from "../logs/chainOf.ts";
import { fakeHeads, fakeTopic, plainScan } from "../logs/fakeChain.ts";
import { createFakeLogNode } from "../logs/fakeLogNode.ts";
import { createContext } from "../support/builders/request.ts";

const BLOCK = 9;

test("logs of an old block without readable receipts must be in the bloom of its header", async () => {
  const chain = chainOf(400);
  const reads: string[] = [];
  const responses = createVerifier({
    level: "full",
    evidence: new Evidence({ nodes: ["fake"], off: [], onOff: assert.fail, onWrongAnswer: assert.fail }),
    pool: { check: () => assert.fail("a thread for a small response") },
    onUncomputable: assert.fail,
  });
  const verifier = new LogVerifier(responses, {
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
  assert.deepEqual(reads, [chain[BLOCK]?.hash]);
  await assert.rejects(
    ask((log) => ({ ...log, topics: [fakeTopic(999)] })),
    /failed verification \(logs\)/,
  );
  await assert.rejects(
    ask((log) => ({ ...log, address: `0x${"99".repeat(20)}` })),
    /failed verification \(logs\)/,
  );
});
