import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import type { Address } from "../../src/ethereum/hex.ts";
import { addressOf } from "../support/builders/stateModel.ts";
import { metric, rpc } from "../support/clients/rpc.ts";
import { followHead } from "../support/servers/followHead.ts";
import { startTraced } from "../support/standIn/startTraced.ts";
import { WrittenChain } from "../support/standIn/writtenChain.ts";

const STATE_HIT = "forebay; hit; detail=state";
const ACCOUNTS = Array.from({ length: 8 }, (_, index) => addressOf(index));
const ALICE = addressOf(0);
const BLOCKS = 4;

/** A service that has no other source than traces, with the default `state.source`. */
const startOnProbation = async (t: TestContext, probation: { readonly blocks: number; readonly values: number }) => {
  const written = new WrittenChain("prague");
  written.mine(ACCOUNTS.map((address) => [address, 1n]));
  const { node, service } = await startTraced(t, written.chain, { probation });
  const balance = async (address: Address) => {
    const { body, headers } = await rpc(service.url, "eth_getBalance", [address, "latest"]);
    return { result: body.result, isHit: headers.get("cache-status") === STATE_HIT };
  };
  /** Seals a block, and reads all accounts. Returns the number of hits. */
  const turn = async (balances: Parameters<WrittenChain["mine"]>[0] = []): Promise<number> => {
    written.mine(balances);
    await followHead(service, written.chain);
    let hits = 0;
    for (const address of ACCOUNTS) {
      const { result, isHit } = await balance(address);
      assert.equal(result, `0x${written.chain.stateAt(written.chain.latest.hash).balance(address).toString(16)}`);
      hits += isHit ? 1 : 0;
    }
    return hits;
  };
  return { node, service, turn, traces: () => node.calls.get("debug_traceBlockByHash") ?? 0 };
};

test("a trace answers no read until enough of its values agreed with the node", async (t) => {
  const { service, turn, traces } = await startOnProbation(t, { blocks: BLOCKS, values: ACCOUNTS.length * BLOCKS });
  const onProbation = () => metric(service.opsUrl, "forebay_state_on_probation");
  // The first reads show that following pays.
  while (traces() === 0) {
    assert.equal(await turn(), 0);
  }
  let blocks = 1;
  while ((await turn()) === 0) {
    assert.equal(await onProbation(), 1);
    blocks++;
    assert.ok(blocks < 4 * BLOCKS, "probation ends");
  }
  assert.ok(blocks >= BLOCKS, `${blocks} blocks`);
  assert.equal(await turn(), ACCOUNTS.length);
  assert.equal(await onProbation(), 0);
});

test("a trace on probation that misses a write answers nothing, and rests", async (t) => {
  const { service, turn, traces } = await startOnProbation(t, { blocks: 8, values: 60 });
  // Until the reads pay for the probation, a value that is read in bulk answers reads of its own block.
  while (traces() === 0) {
    await turn();
  }
  while (traces() < 3) {
    assert.equal(await turn(), 0);
  }
  // The trace does not have this write. Values that are learned from the node afterwards answer reads of this block.
  await turn([[ALICE, 2n]]);
  assert.equal(await metric(service.opsUrl, "forebay_state_differences_total", 'kind="read"'), 1);
  const before = traces();
  assert.equal(await turn(), 0);
  assert.equal(await turn(), 0);
  assert.equal(traces(), before);
});
