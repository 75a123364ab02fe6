import assert from "node:assert/strict";
import { mock, type TestContext, test } from "node:test";
import type { Address, Hex } from "viem";
import { metric, rpc } from "../support/clients/rpc.ts";
import { until } from "../support/clients/until.ts";
import { type AnsweredCallsOptions, startAnsweredCalls } from "../support/servers/answeredCalls.ts";

// No answer is compared at random.
mock.method(Math, "random", () => 0.5);

/** Returns its first slot. */
const READER: Hex = "0x5f545f5260205ff3";
const CONTRACT: Address = `0x${"c0".repeat(20)}`;
const CALL = { to: CONTRACT };
const WORD_DIGITS = 64;

const start = (t: TestContext, options: AnsweredCallsOptions = {}) =>
  startAnsweredCalls(t, { codes: { [CONTRACT]: READER }, ...options });

/** Sends the call at new blocks, and asserts that the node is asked each time. */
const assertAlwaysAsked = async (rig: Awaited<ReturnType<typeof start>>): Promise<void> => {
  for (let count = 0; count < 4; count++) {
    await rig.mine();
    assert.equal((await rig.ask("eth_call", [CALL])).isHit, false);
  }
  assert.equal(await rig.events("reused"), 0);
};

const isPlainCall = (method: string, params: readonly unknown[]): boolean =>
  method === "eth_call" && params.length === 2;

test("an answer of a node that differs from the execution here is not learned", async (t) => {
  const change: AnsweredCallsOptions["change"] = (method, params, result) =>
    isPlainCall(method, params) ? `0x${"1".padStart(WORD_DIGITS, "0")}` : result;
  const rig = await start(t, { change });
  await rig.refuse("eth_call", [CALL], "mismatch");
  await assertAlwaysAsked(rig);
});

test("state.follow: plain answers reads of single values, and no call", async (t) => {
  const rig = await start(t, { state: { follow: "plain" } });
  await assertAlwaysAsked(rig);
  await until(async () => {
    await rig.mine();
    return (await rig.ask("eth_getBalance", [CONTRACT])).isHit;
  }, "a balance without a node");
  assert.equal(await metric(rig.service.opsUrl, "forebay_state_lookups_total", 'method="eth_call"'), 0);
});

test("a change of the node's state inside a block ends all answers", async (t) => {
  const rig = await start(t);
  await rig.learn("eth_call", [CALL]);
  const value = `0x${"9".padStart(WORD_DIGITS, "0")}`;
  const slot = `0x${"0".repeat(WORD_DIGITS)}`;
  await rpc(rig.service.url, "anvil_setStorageAt", [CONTRACT, slot, value]);
  assert.deepEqual(await rig.ask("eth_call", [CALL]), { result: value, error: undefined, isHit: false });
});

test("an answer that differs from the node's at the same block drops all values", async (t) => {
  const rig = await start(t);
  await rig.learn("eth_call", [CALL]);
  const value = `0x${"9".padStart(WORD_DIGITS, "0")}`;
  // No write set shows this change, and forebay does not see the call.
  await rig.anvil.call("anvil_setStorageAt", CONTRACT, `0x${"0".repeat(WORD_DIGITS)}`, value);
  assert.equal((await rig.ask("eth_call", [CALL])).isHit, true);
  await fetch(rig.service.url, {
    method: "POST",
    headers: { "content-type": "application/json", "cache-control": "no-cache" },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "eth_call", params: [CALL, "latest"] }),
  });
  await until(async () => (await metric(rig.service.opsUrl, "forebay_state_differences_total")) === 1, "a difference");
  assert.equal(await rig.events("differed"), 1);
  assert.deepEqual(await rig.ask("eth_call", [CALL]), { result: value, error: undefined, isHit: false });
});
