import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { type RpcAnswer, rpc } from "../support/clients/rpc.ts";
import { createFakeChain } from "../support/fakes/fakeChain.ts";
import { createFakeNode } from "../support/fakes/fakeNode.ts";
import { createService, type ServiceChain } from "../support/servers/service.ts";
import { untilFilled } from "../support/servers/untilFilled.ts";

const HEIGHT = 40;
const HASH = `0x${"12".repeat(32)}`;
const FINAL = "0x10";
/** A thread verifies larger results. */
const THREAD_BYTES = 128 * 1024;

const failed = { txHash: HASH, error: "execution timeout" };
const large = { txHash: HASH, result: { output: `0x${"11".repeat(THREAD_BYTES / 2)}`, error: "execution reverted" } };
const traced = { txHash: HASH, result: { gas: "0x5208", error: "execution reverted" } };

interface Row {
  readonly what: string;
  readonly method: string;
  readonly params: (chain: ReturnType<typeof createFakeChain>) => readonly unknown[];
  /** The node returns it once. */
  readonly first: unknown;
  readonly next: unknown;
}

const TRACE = { tracer: "callTracer" };
const byHash = (chain: ReturnType<typeof createFakeChain>) => [chain.blocks[16]?.hash, TRACE];
const RAW_ABSENT = { first: "0x", next: null } as const;

const ROWS: readonly Row[] = [
  { what: "no raw transaction", method: "eth_getRawTransactionByHash", params: () => [HASH], ...RAW_ABSENT },
  { what: "no raw transaction", method: "debug_getRawTransaction", params: () => [HASH], ...RAW_ABSENT },
  {
    what: "no raw transaction at an index",
    method: "eth_getRawTransactionByBlockHashAndIndex",
    params: (chain) => [chain.blocks[16]?.hash, "0x0"],
    ...{ first: "0x", next: "0x02" },
  },
  {
    what: "no raw transaction at an index",
    method: "eth_getRawTransactionByBlockNumberAndIndex",
    params: () => [FINAL, "0x0"],
    ...{ first: "0x", next: "0x02" },
  },
  {
    what: "a trace with an item that failed",
    method: "debug_traceBlockByHash",
    params: byHash,
    ...{ first: [traced, failed], next: [traced, traced] },
  },
  {
    what: "a large trace with an item that failed",
    method: "debug_traceBlockByHash",
    params: byHash,
    ...{ first: [large, failed], next: [large, traced] },
  },
  {
    what: "a trace with an item without a result",
    method: "debug_traceBlockByNumber",
    params: () => [FINAL, TRACE],
    ...{ first: [traced, null], next: [{ ...traced, error: null }] },
  },
];

const start = async (t: TestContext, { method, first, next }: Row, verify: ServiceChain["verify"]) => {
  const chain = createFakeChain({ height: HEIGHT });
  let asked = 0;
  const answer = (): unknown => {
    asked++;
    return asked === 1 ? first : next;
  };
  // A request by number is sent by hash if the node supports it.
  const handlers = {
    [method]: answer,
    [method.replace("ByNumber", "ByHash").replace("ByBlockNumber", "ByBlockHash")]: answer,
  };
  const node = await createFakeNode({ chain, handlers });
  t.after(() => node.close());
  const options = { pending: { mode: "node" }, state: { follow: false }, finality: { depth: 8 }, verify } as const;
  const service = await createService({ nodes: [{ url: node.url }], ...options });
  t.after(() => service.close());
  await untilFilled(service);
  return { chain, service, asked: () => asked };
};

const isHit = ({ headers }: RpcAnswer): boolean => headers.get("cache-status")?.startsWith("forebay; hit") === true;

for (const row of ROWS) {
  test(`${row.what} is served, and not kept: ${row.method}`, async (t) => {
    const { chain, service, asked } = await start(t, row, "full");
    const ask = (): Promise<RpcAnswer> => rpc(service.url, row.method, row.params(chain));
    const absent = await ask();
    assert.deepEqual(absent.body.result, row.first);
    assert.equal(absent.headers.get("x-forebay-proof"), "stated", "nothing proves that there is nothing");
    const second = await ask();
    assert.deepEqual(second.body.result, row.next, second.text.slice(0, 200));
    assert.equal(asked(), 2);
    const last = await ask();
    assert.deepEqual(last.body.result, row.next);
    assert.equal(isHit(last), row.next !== null, "a whole result is kept");
  });
}

test("without verification, nothing reads the items of a trace, so that it is not kept", async (t) => {
  const row = ROWS.find(({ method }) => method === "debug_traceBlockByHash");
  assert.ok(row);
  const { chain, service } = await start(t, row, "off");
  const answers: unknown[] = [];
  for (let time = 0; time < 3; time++) {
    const answer = await rpc(service.url, row.method, row.params(chain));
    answers.push([answer.body.result, isHit(answer)]);
  }
  assert.deepEqual(answers, [
    [row.first, false],
    [row.next, false],
    [row.next, false],
  ]);
});
