import assert from "node:assert/strict";
import { after, test } from "node:test";
import { type Address, keccak256 } from "viem";
import { metric } from "../support/clients/rpc.ts";
import { startAnsweredCalls } from "../support/servers/answeredCalls.ts";

/** Returns the top of the stack: PUSH0, MSTORE, PUSH1 32, PUSH0, RETURN. */
const RETURN_TOP = "5f5260205ff3";
/** An account of anvil, which has a balance and no nonce. */
const SENDER: Address = "0x70997970c51812dc3a010c7d01b50e0d17dc79c8";
const SINK: Address = "0x0000000000000000000000000000000000051234";
/** Returns the code hash of the account. */
const HASH_READER: Address = "0x00000000000000000000000000000000c0de0000";
/** Returns the slot that the caller's address names. */
const CALLER_READER: Address = "0x00000000000000000000000000000000c0de0001";

const rig = await startAnsweredCalls(
  { after },
  {
    codes: {
      [HASH_READER]: `0x73${SENDER.slice(2)}3f${RETURN_TOP}`,
      [CALLER_READER]: `0x3354${RETURN_TOP}`,
    },
  },
);

test("an answer that depends on the emptiness of a partly overridden account ends when its nonce is written", async () => {
  const params = [{ to: HASH_READER, gas: "0x30000" }, { [SENDER]: { balance: "0x0" } }];
  await rig.learn("eth_call", params);
  await rig.anvil.call("eth_sendTransaction", { from: SENDER, to: SINK, value: "0x1", gas: "0x10000" });
  await rig.mine();
  await rig.compare("eth_call", params);
  assert.equal((await rig.ask("eth_call", params)).result, keccak256("0x"));
});

const answerLookups = (): Promise<number> =>
  metric(rig.service.opsUrl, "forebay_state_lookups_total", 'method="eth_call",outcome="miss"');

/** Nodes may know fields that forebay does not. geth ignores the case of field names. */
for (const params of [
  [{ to: CALLER_READER, From: SENDER }],
  [{ to: CALLER_READER }, { [SINK]: { unknownField: "0x0" } }],
  [{ to: CALLER_READER, accessList: [{ address: SINK, storageKeys: [], unknownField: "0x0" }] }],
]) {
  test(`a call with a field that forebay does not know is always asked: ${JSON.stringify(params)}`, async () => {
    const lookups = await answerLookups();
    await rig.mine();
    await rig.ask("eth_call", params);
    assert.equal(await answerLookups(), lookups);
  });
}
