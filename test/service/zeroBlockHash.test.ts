import assert from "node:assert/strict";
import { after, mock, test } from "node:test";
import type { Address, Hex } from "viem";
import { until } from "../support/clients/until.ts";
import { startAnsweredCalls } from "../support/servers/answeredCalls.ts";

// No answer is compared at random.
mock.method(Math, "random", () => 0.5);

/** Returns the hash of the parent: PUSH1 1, NUMBER, SUB, BLOCKHASH. */
const READER: Address = "0x00000000000000000000000000000000000c0de0";
const PROGRAM: Hex = "0x60014303405f5260205ff3";
/** Returns no bytes. */
const OTHER: Address = "0x00000000000000000000000000000000000c0de1";
const ZERO: Hex = `0x${"00".repeat(32)}`;

let isZero = false;
const rig = await startAnsweredCalls(
  { after },
  {
    codes: { [READER]: PROGRAM, [OTHER]: "0x00" },
    change: (method, _params, result) => (isZero && method === "eth_call" ? ZERO : result),
  },
);

test("a node's zero BLOCKHASH that an execution here disproves is not served again", async () => {
  const call = { to: READER };
  // Calls are learned from here on.
  await rig.learn("eth_call", [{ to: OTHER }]);
  await rig.mine();
  await rig.ask("eth_call", [call]);
  const before = await rig.events("mismatch");
  await rig.mine();
  isZero = true;
  assert.equal((await rig.ask("eth_call", [call])).result, ZERO, "bytes of a first response are not known to be wrong");
  isZero = false;
  await until(async () => (await rig.events("mismatch")) > before, "an execution of the call");
  await rig.compare("eth_call", [call]);
});
