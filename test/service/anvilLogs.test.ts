import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { rpc } from "../support/clients/rpc.ts";
import { compareFilters, type EmittedLogs, startEmittedLogs } from "./emittedLogs.ts";

const BLOCKS = 500;
const LOGS = 5_000;
const FILTERS = 40;

let emitted: EmittedLogs;
before(async () => {
  emitted = await startEmittedLogs(BLOCKS, LOGS);
});
after(() => emitted.close());

test(`${FILTERS} random filters over ${BLOCKS} blocks return the same logs as anvil`, () =>
  compareFilters(emitted, FILTERS));

const TOPICS_OF_SOMETHING = 3;

test("a filter of n positions returns only logs with n topics, by range, block and polled filter", async () => {
  const { anvil, service } = emitted;
  const head = String(await anvil.call("eth_blockNumber"));
  const from = `0x${(Number(head) - 100).toString(16)}`;
  const all = (await anvil.call("eth_getLogs", { fromBlock: from })) as readonly { readonly blockHash: string }[];
  assert.ok(all.length > 0);
  const count = async (method: string, parameter: unknown) => {
    const { body, text } = await rpc(service.url, method, [parameter]);
    assert.ok(Array.isArray(body.result), text);
    return body.result.length;
  };
  const blockHash = all[0]?.blockHash;
  const inBlock = all.filter((log) => log.blockHash === blockHash).length;
  for (const positions of [
    [],
    [null],
    [null, []],
    [null, null, null],
    [null, null, null, null],
    [[null], [], [], []],
  ]) {
    const isMatch = positions.length <= TOPICS_OF_SOMETHING;
    const text = JSON.stringify(positions);
    assert.equal(await count("eth_getLogs", { fromBlock: from, topics: positions }), isMatch ? all.length : 0, text);
    assert.equal(await count("eth_getLogs", { blockHash, topics: positions }), isMatch ? inBlock : 0, text);
    const filter = (await rpc(service.url, "eth_newFilter", [{ fromBlock: from, topics: positions }])).body.result;
    assert.equal(await count("eth_getFilterLogs", filter), isMatch ? all.length : 0, text);
  }
});
