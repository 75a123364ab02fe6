import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type Child, startChild } from "../bench/support/child.ts";
import { rpc } from "../support/clients/rpc.ts";
import { until } from "../support/clients/until.ts";
import { createService, type Service } from "../support/servers/service.ts";

/** Blocks with 150 transactions and 300 logs each. */
const BLOCKS = 24;
const CALLS = 20;
const REQUIRE = { "x-forebay-require": "proven" };
const WORD = `0x${"b2".repeat(32)}`;
/** Above that, 20 blocks and their receipts, of 0.5 MB together, find no room at once. */
const BUDGET_BYTES = 8 * 1024 * 1024;
/** Each answer comes within this time, on a busy machine too. */
const MAX_MS = 120_000;
/** A proven answer from memory may cost this many times as much as one that is not proven. */
const MAX_RATIO = 8;

let children: readonly Child[];
let ports: readonly unknown[];
let unlimited: Service;

before(async () => {
  children = [0, 1, 2].map(() => startChild("verifiedNode.ts", [String(BLOCKS)]));
  ports = await Promise.all(children.map((child) => child.message()));
  unlimited = await start();
});
after(async () => {
  await unlimited?.close();
  await Promise.all((children ?? []).map((child) => child.end()));
});

const quantity = (value: number): string => `0x${value.toString(16)}`;

const start = async (server: object = {}): Promise<Service> => {
  const nodes = ports.map((port, index) => ({ url: `http://127.0.0.1:${port}`, provider: `operator${index}` }));
  const service = await createService(
    { nodes, pending: { mode: "node" }, forks: "prague", state: { follow: false }, upstream: { timeoutMs: MAX_MS } },
    { server },
  );
  await until(
    async () => (await rpc(service.url, "eth_getUncleCountByBlockNumber", ["0x2"], REQUIRE)).body.error === undefined,
    "the head is agreed, and the ring reaches down to the block",
  );
  return service;
};

const batchOf = (method: string, paramsAt: (index: number) => readonly unknown[]): string =>
  JSON.stringify(
    Array.from({ length: CALLS }, (_, id) => ({ jsonrpc: "2.0", id, method, params: paramsAt(id % (BLOCKS - 4)) })),
  );

interface Answered {
  readonly text: string;
  readonly cpuMs: number;
}

/** Sends a batch. Returns its response, and the CPU time of this thread. */
const send = async ({ url }: Service, body: string, headers = {}): Promise<Answered> => {
  const { user, system } = process.threadCpuUsage();
  const response = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body,
  });
  const text = await response.text();
  const end = process.threadCpuUsage();
  return { text, cpuMs: (end.user + end.system - user - system) / 1_000 };
};

for (const [name, body] of [
  ["blocks", batchOf("eth_getBlockByNumber", (index) => [quantity(index + 2), true])],
  ["receipts", batchOf("eth_getBlockReceipts", (index) => [quantity(index + 2)])],
] as const) {
  test(`a proven read from memory costs the main thread about as much as any (${name})`, async () => {
    const costs = async (headers: Readonly<Record<string, string>>): Promise<number> => {
      const all: number[] = [];
      for (let round = 0; round < 3; round++) {
        const { text, cpuMs } = await send(unlimited, body, headers);
        assert.doesNotMatch(text.slice(-500), /"error"/);
        assert.equal(text.split('"result"').length - 1, CALLS);
        all.push(cpuMs);
      }
      // The first response was not in memory.
      return Math.min(...all.slice(1));
    };
    const plain = await costs({});
    const proven = await costs(REQUIRE);
    assert.ok(proven < MAX_RATIO * plain + 10, `${proven} ms of CPU, without proofs ${plain} ms`);
  });
}

test("logs of many blocks are proven block by block: what is not part of the answer is not held", async (t) => {
  const service = await start({ memoryBudgetBytes: BUDGET_BYTES });
  t.after(() => service.close());
  // The blooms admit such logs, and no block has one.
  const filter = { fromBlock: "0x2", toBlock: quantity(BLOCKS - 3), topics: [WORD, WORD, WORD, WORD] };
  const { body } = await rpc(service.url, "eth_getLogs", [filter], REQUIRE);
  assert.deepEqual(body.result, [], JSON.stringify(body));
});

test("proven answers count in the memory budget", async (t) => {
  const service = await start({ memoryBudgetBytes: BUDGET_BYTES });
  t.after(() => service.close());
  const { text } = await send(
    service,
    batchOf("eth_getBlockReceipts", (index) => [quantity(index + 2)]),
    REQUIRE,
  );
  assert.match(text, /the server is over its memory budget/);
});
