import assert from "node:assert/strict";
import { describe, type TestContext, test } from "node:test";
import { metric, rpc } from "../support/clients/rpc.ts";
import { until } from "../support/clients/until.ts";
import { createFakeChain } from "../support/fakes/fakeChain.ts";
import { createFakeNode, type FakeNode } from "../support/fakes/fakeNode.ts";
import { startRedis } from "../support/servers/redis.ts";
import { createService, type Service } from "../support/servers/service.ts";

const HEIGHT = 100;
const FINAL = "0x10";
const ADDRESS = `0x${"11".repeat(20)}`;
const WORD = `0x${"0".repeat(62)}2a`;
const PROOF = {
  ...{ address: ADDRESS, accountProof: [], balance: "0x1", nonce: "0x0", storageProof: [] },
  ...{ codeHash: WORD, storageHash: WORD },
};

interface Row {
  readonly method: string;
  readonly params: readonly unknown[];
  readonly right: unknown;
  /** Results of another form. */
  readonly wrong: readonly unknown[];
  /** The blocks of the nodes have no right hashes, so that no proof can be verified. */
  readonly verify?: "cheap";
  /** A node without the block returns `null`, which is served if no other node is better, and never cached. */
  readonly isNullable?: true;
}

const NO_QUANTITIES = [{ a: 1 }, [], true, "", "0x", "0xzz", "12", `0x${"1".repeat(65)}`, 12, '0x1"'];
const NO_DATA = [{ a: 1 }, [], "", "0x123", "0x12zz", "1234", 7];

const ROWS: readonly Row[] = [
  { method: "eth_getBalance", params: [ADDRESS, FINAL], right: "0xde0b6b3a7640000", wrong: NO_QUANTITIES },
  { method: "eth_getTransactionCount", params: [ADDRESS, FINAL], right: "0x5", wrong: NO_QUANTITIES },
  { method: "eth_estimateGas", params: [{ to: ADDRESS }, FINAL], right: "0x5208", wrong: NO_QUANTITIES },
  { method: "eth_getCode", params: [ADDRESS, FINAL], right: "0x6001", wrong: NO_DATA },
  { method: "eth_call", params: [{ to: ADDRESS }, FINAL], right: "0x", wrong: NO_DATA },
  { method: "eth_getStorageAt", params: [ADDRESS, "0x0", FINAL], right: WORD, wrong: [...NO_QUANTITIES, `${WORD}00`] },
  {
    method: "eth_getProof",
    params: [ADDRESS, [], FINAL],
    right: PROOF,
    verify: "cheap",
    wrong: [{ a: 1 }, [], "0x", { balance: "0x1" }],
  },
  {
    method: "eth_createAccessList",
    params: [{ to: ADDRESS }, FINAL],
    right: { accessList: [] },
    wrong: [{ a: 1 }, "0x"],
  },
  {
    method: "eth_getBlockTransactionCountByNumber",
    params: [FINAL],
    right: "0x0",
    wrong: NO_QUANTITIES,
    isNullable: true,
  },
  { method: "debug_getRawHeader", params: [FINAL], right: "0xf9", wrong: NO_DATA, isNullable: true },
  {
    method: "debug_traceBlockByNumber",
    params: [FINAL],
    right: [{ result: {} }],
    wrong: [{ a: 1 }, "0x", 1],
    isNullable: true,
  },
  { method: "eth_gasPrice", params: [], right: "0x7", wrong: NO_QUANTITIES },
  {
    method: "eth_feeHistory",
    params: ["0x1", "latest", []],
    right: { oldestBlock: "0x64" },
    wrong: [{ a: 1 }, [], "0x1"],
  },
];

interface Stage {
  readonly service: Service;
  readonly liar: FakeNode;
  /** The result of the liar for the tested method. */
  lie: unknown;
}

const start = async (t: TestContext, row: Row, hasHonest: boolean, redis?: string): Promise<Stage> => {
  const chain = createFakeChain({ height: HEIGHT });
  const liar = await createFakeNode({ chain, handlers: { [row.method]: () => stage.lie } });
  const honest = await createFakeNode({ chain, handlers: { [row.method]: () => row.right } });
  // The pool prefers the faster node.
  honest.faults.delayMs = 5;
  t.after(() => Promise.all([liar.close(), honest.close()]));
  const service = await createService(
    {
      nodes: [{ name: "liar", url: liar.url }, ...(hasHonest ? [{ name: "honest", url: honest.url }] : [])],
      pending: { mode: "node" },
      state: { follow: false },
      ...(row.verify && { verify: row.verify }),
    },
    { cache: { redis } },
  );
  t.after(() => service.close());
  const hasHeads = () => service.chains[0]?.upstreams.nodes.every(({ head }) => head !== undefined) === true;
  await until(hasHeads, "the heads of all nodes are known");
  const stage: Stage = { service, liar, lie: row.right };
  return stage;
};

const suspended = ({ service }: Stage): Promise<number> =>
  metric(service.opsUrl, "forebay_upstream_suspended", 'node="liar"');

describe("a result of a wrong form", { concurrency: 4 }, () => {
  for (const [at, row] of ROWS.entries()) {
    const { method, params, right, wrong, isNullable = false } = row;
    const lies = isNullable ? wrong : [null, ...wrong];
    test(`${method}: the other node's result is served and cached`, async (t) => {
      const redis = await startRedis(t);
      // Each needs a service of its own. The test of the only node has all forms, and rows of one kind have different ones here.
      for (const lie of lies.filter((_, index) => index === 0 || index % 3 === at % 3)) {
        await redis.admin.flushall();
        const stage = await start(t, row, true, redis.url);
        stage.lie = lie;
        const first = await rpc(stage.service.url, method, params);
        assert.deepEqual(first.body.result, right, `instead of ${JSON.stringify(lie)}: ${first.text}`);
        assert.deepEqual((await rpc(stage.service.url, method, params)).body.result, right);
        await stage.service.close();
      }
    });

    test(`${method}: of the only node, it is an error, and not cached`, async (t) => {
      const stage = await start(t, row, false);
      for (const lie of lies) {
        stage.lie = lie;
        const { body, status } = await rpc(stage.service.url, method, params);
        assert.equal(body.result, undefined, JSON.stringify(lie));
        assert.equal(status, 503);
        assert.match(body.error?.message ?? "", /^the upstream response failed verification \(form\)/);
        // A node that lacks the block may return `null`.
        assert.equal(await suspended(stage), lie === null ? 0 : 1, JSON.stringify(lie));
      }
      const failures = 'node="liar",check="form"';
      assert.ok((await metric(stage.service.opsUrl, "forebay_verify_failures_total", failures)) > 0);
      stage.lie = right;
      assert.deepEqual((await rpc(stage.service.url, method, params)).body.result, right);
    });
  }
});
