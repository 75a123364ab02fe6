import assert from "node:assert/strict";
import { test } from "node:test";
import { metric } from "../support/clients/rpc.ts";
import { startAnsweredCalls } from "../support/servers/answeredCalls.ts";

const OWNER = "0x00000000000000000000000000000000000a11ce";

test("calls are neither learned nor answered here before the values of a trace agreed with the node", async (t) => {
  const rig = await startAnsweredCalls(t, {
    contracts: [["One", "Token", () => []]],
    state: { probation: { blocks: 4, values: 4 } },
  });
  const call = { to: rig.placed.address("One"), data: rig.placed.encode("Token", "balanceOf", [OWNER]) };
  for (let count = 0; count < 4; count++) {
    await rig.mine();
    assert.equal((await rig.ask("eth_call", [call])).isHit, false);
  }
  assert.equal(await metric(rig.service.opsUrl, "forebay_state_units_spent_total", 'purpose="learning"'), 0);
  // Each block agrees with the node, until that is enough.
  for (let count = 0; count < 6; count++) {
    await rig.mine();
    await rig.ask("eth_getBalance", [OWNER]);
  }
  await rig.learn("eth_call", [call]);
  await rig.mine();
  assert.equal((await rig.ask("eth_call", [call])).isHit, true);
});
