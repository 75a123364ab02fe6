import assert from "node:assert/strict";
import { test } from "node:test";
import type { Address, Hex } from "viem";
import { startAnsweredCalls } from "../support/servers/answeredCalls.ts";

const none = () => [];
const TOKENS = ["One", "Two", "Three"];
const CONTRACTS = [["Multicall", "Multicall", none] as const, ...TOKENS.map((name) => [name, "Token", none] as const)];
const OWNER: Address = "0x00000000000000000000000000000000000a11ce";
const OTHER: Address = "0x00000000000000000000000000000000000b0b00";

type Rig = Awaited<ReturnType<typeof startAnsweredCalls>>;

/** Returns the call that reads the balances of one account of all tokens. */
const balancesCall = ({ placed }: Rig, owner: Address): { readonly to: Address; readonly data: Hex } => {
  const data = placed.encode("Token", "balanceOf", [owner]);
  const calls = TOKENS.map((name) => ({ to: placed.address(name), gasLimit: 100_000n, data }));
  return { to: placed.address("Multicall"), data: placed.encode("Multicall", "tryAll", [calls]) };
};

const mint = (rig: Rig, token: string, to: Address): Promise<void> =>
  rig.send(rig.placed.address(token), rig.placed.encode("Token", "mint", [to, 5n]));

test("a multicall of balances survives a block that touches others, and ends at one that touches a balance", async (t) => {
  const rig = await startAnsweredCalls(t, { contracts: CONTRACTS });
  const call = balancesCall(rig, OWNER);
  await rig.learn("eth_call", [call]);
  const before = rig.asked();
  for (let count = 0; count < 3; count++) {
    await mint(rig, "Two", OTHER);
    const { result, isHit } = await rig.ask("eth_call", [call]);
    assert.equal(isHit, true);
    assert.equal(result, await rig.anvil.call("eth_call", call, "latest"));
  }
  assert.equal(rig.asked(), before);
  await mint(rig, "Two", OWNER);
  const { result, isHit } = await rig.ask("eth_call", [call]);
  assert.equal(isHit, false);
  assert.equal(result, await rig.anvil.call("eth_call", call, "latest"));
});
