import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import type { Flashblock } from "../devnet/flashblock.ts";
import { createRandom } from "../support/builders/randomValues.ts";
import { until } from "../support/clients/until.ts";
import { createFakeFeed } from "../support/fakes/fakeFeed.ts";
import { followHead } from "../support/servers/followHead.ts";
import { createService } from "../support/servers/service.ts";
import { startWorldNode } from "../world/nodes/worldNode.ts";
import { REFUND_ACCOUNTS, RefundFeed, type VersionFields } from "../world/state/refundFeed.ts";
import { StandInChain } from "../world/state/standInChain.ts";

/** Returns the balance of the account in its input. */
const BALANCE_OF = "0x5f35315f5260205ff3";
type Read = readonly [method: string, params: readonly unknown[]];
const CONTRACT = `0x${"cc".repeat(20)}`;

const start = async (t: TestContext) => {
  const chain = new StandInChain("prague");
  const sequencer = new RefundFeed(chain, createRandom(1));
  sequencer.genesis();
  sequencer.begin();
  sequencer.seal();
  const [feed, node] = [await createFakeFeed(), await startWorldNode(t, chain)];
  t.after(() => feed.close());
  const connected = feed.connected();
  const service = await createService({
    nodes: [{ url: node.url }],
    ...{ blockTimeMs: 1_000, forks: "lagoon" },
    pending: { mode: "feed", feeds: [feed.url] },
  });
  t.after(() => service.close());
  await connected;
  const read = async (calls: readonly Read[]) => {
    const response = await fetch(service.url, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(calls.map(([method, params], id) => ({ jsonrpc: "2.0", id, method, params }))),
    });
    const answers = (await response.json()) as readonly { readonly result?: unknown; readonly error?: unknown }[];
    assert.deepEqual(
      answers.flatMap(({ error }) => error ?? []),
      [],
    );
    return { results: answers.map(({ result }) => result), mode: response.headers.get("x-forebay-pending") };
  };
  /** Sends a message, and waits until its block is pending with the gas of this message. */
  const send = async (message: Flashblock) => {
    feed.send(message);
    let block: unknown;
    await until(async () => {
      const { results, mode } = await read([["eth_getBlockByNumber", ["pending", false]]]);
      [block] = results;
      const { gasUsed, parentHash } = Object(block);
      return mode === "live" && gasUsed === message.diff.gas_used && parentHash === chain.head.hash;
    }, "the message is pending");
    return sequencer.versionOf(block as VersionFields);
  };
  return { ...{ chain, sequencer, service, read, send }, follow: () => followHead(service, chain) };
};

test("nonces, balances and calls at pending are those after the refunds of the newest message", async (t) => {
  const { sequencer, send, read, follow } = await start(t);
  for (let block = 0; block < 2; block++) {
    await send(sequencer.begin());
    // Two messages have no transactions, and other refunds than the one before.
    for (const transfers of [4, 0, 3, 0]) {
      const version = await send(sequencer.step(transfers));
      assert.ok(version !== undefined && version.refunds.size > 0);
      const calls = REFUND_ACCOUNTS.flatMap((address): Read[] => {
        const call = { to: CONTRACT, data: `0x${address.slice(2).padStart(64, "0")}` };
        return [
          ["eth_getTransactionCount", [address, "pending"]],
          ["eth_getBalance", [address, "pending"]],
          ["eth_call", [call, "pending", { [CONTRACT]: { code: BALANCE_OF } }]],
        ];
      });
      const expected = REFUND_ACCOUNTS.flatMap((address) => {
        const { nonce, balance } = version.accounts.get(address) ?? {};
        return [nonce, balance, balance];
      });
      const { results, mode } = await read(calls);
      assert.deepEqual([results.map((result) => BigInt(String(result))), mode], [expected, "live"]);
    }
    sequencer.seal();
    await follow();
  }
});
