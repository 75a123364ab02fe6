import assert from "node:assert/strict";
import { after, mock, test } from "node:test";
import { type Address, getContractAddress, type Hex, keccak256, pad, toHex } from "viem";
import { until } from "../support/clients/until.ts";
import { startAnsweredCalls } from "../support/servers/answeredCalls.ts";

// No answer is compared at random.
mock.method(Math, "random", () => 0.5);

const none = () => [];
const TOKENS = ["One", "Two", "Three"];
const CONTRACTS = [["Multicall", "Multicall", none] as const, ...TOKENS.map((name) => [name, "Token", none] as const)];
const OWNER: Address = "0x00000000000000000000000000000000000a11ce";
const OTHER: Address = "0x00000000000000000000000000000000000b0b00";
const NEW_ACCOUNT: Address = "0x0000000000000000000000000000000000e00e00";
/** Returns the top of the stack: PUSH0, MSTORE, PUSH1 32, PUSH0, RETURN. */
const RETURN_TOP = "5f5260205ff3";

const codeAt = (index: number): Address => `0x${(0xc0de_0000 + index).toString(16).padStart(40, "0")}`;

/** Programs with one opcode of the block each. */
const BLOCK_PROGRAMS: Readonly<Record<string, Hex>> = {
  NUMBER: `0x43${RETURN_TOP}`,
  TIMESTAMP: `0x42${RETURN_TOP}`,
  COINBASE: `0x41${RETURN_TOP}`,
  PREVRANDAO: `0x44${RETURN_TOP}`,
  GASLIMIT: `0x45${RETURN_TOP}`,
  BASEFEE: `0x48${RETURN_TOP}`,
  BLOBBASEFEE: `0x4a${RETURN_TOP}`,
  BLOCKHASH: `0x6001430340${RETURN_TOP}`,
};
const OPCODES = Object.keys(BLOCK_PROGRAMS);
const GAS_READER = codeAt(100);
const HASH_READER = codeAt(101);
const DELEGATING = codeAt(102);
/** The first account of anvil creates its sixth contract here. */
const CREATOR: Address = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266";
const CREATED = getContractAddress({ from: CREATOR, nonce: BigInt(CONTRACTS.length) });
/** Init code that returns a program: a copy of the bytes after it. */
const initCode = (program: Hex): Hex => `0x600a600c5f39600a5ff3${"00".repeat(2)}${program.slice(2).padEnd(20, "0")}`;

const rig = await startAnsweredCalls(
  { after },
  {
    contracts: CONTRACTS,
    codes: {
      ...Object.fromEntries(OPCODES.map((opcode, index) => [codeAt(index), BLOCK_PROGRAMS[opcode] ?? "0x"])),
      [GAS_READER]: `0x5a${RETURN_TOP}`,
      [HASH_READER]: `0x73${NEW_ACCOUNT.slice(2)}3f${RETURN_TOP}`,
      [DELEGATING]: `0xef0100${CREATED.slice(2)}`,
    },
  },
);
const { placed, anvil } = rig;

/** Returns the call that reads the balances of one account of all tokens. */
const balancesCall = (owner: Address): { readonly to: Address; readonly data: Hex } => {
  const data = placed.encode("Token", "balanceOf", [owner]);
  const calls = TOKENS.map((name) => ({ to: placed.address(name), gasLimit: 100_000n, data }));
  return { to: placed.address("Multicall"), data: placed.encode("Multicall", "tryAll", [calls]) };
};

const mint = (token: string, to: Address): Promise<void> =>
  rig.send(placed.address(token), placed.encode("Token", "mint", [to, 5n]));

/** Counts the calls that the node gets while a test runs a step. */
const countAsked = async (step: () => Promise<unknown>, method = "eth_call"): Promise<number> => {
  const before = rig.asked(method);
  await step();
  return rig.asked(method) - before;
};

test("a call is answered from a contract that is created at an address to which an account delegates", async () => {
  const call = { to: DELEGATING, gas: "0x30000" };
  await rig.learn("eth_call", [call]);
  await rig.mine();
  assert.equal(await rig.compare("eth_call", [call]), true);
  const program: Hex = `0x602a${RETURN_TOP}`;
  await anvil.call("eth_sendTransaction", { from: CREATOR, data: initCode(program), gas: "0x100000" });
  await rig.mine();
  assert.notEqual(await anvil.call("eth_getCode", CREATED, "latest"), "0x");
  await rig.compare("eth_call", [call]);
  assert.equal(BigInt(String((await rig.ask("eth_call", [call])).result)), 42n);
});

test("a multicall of balances survives a block that touches others, and ends at one that touches a balance", async () => {
  const call = balancesCall(OWNER);
  await rig.learn("eth_call", [call]);
  const survived = await rig.events("reused");
  const asked = await countAsked(async () => {
    for (let count = 0; count < 3; count++) {
      await mint("Two", OTHER);
      assert.equal(await rig.compare("eth_call", [call]), true);
    }
  });
  assert.equal(asked, 0);
  assert.equal(await rig.events("reused"), survived + 3);
  await mint("Two", OWNER);
  await rig.compare("eth_call", [call]);
  assert.equal(await rig.events("reused"), survived + 3);
});

test("a call whose written values are known is executed here, without a node", async () => {
  const call = balancesCall(OTHER);
  await rig.learn("eth_call", [call]);
  const reruns = await rig.events("recomputed");
  const asked = await countAsked(async () => {
    for (let count = 0; count < 3; count++) {
      await mint("Three", OTHER);
      assert.equal(await rig.compare("eth_call", [call]), true);
    }
  });
  assert.equal(asked, 0);
  assert.equal(await rig.events("recomputed"), reruns + 3);
});

for (const [index, opcode] of OPCODES.entries()) {
  test(`a call that runs ${opcode} never has the value of another block`, async () => {
    const call = { to: codeAt(index) };
    for (let count = 0; count < 4; count++) {
      await rig.mine();
      await rig.compare("eth_call", [call]);
      await rig.compare("eth_call", [call]);
    }
  });
}

test("a call that runs TIMESTAMP is executed here at each block", async () => {
  const call = { to: codeAt(OPCODES.indexOf("TIMESTAMP")), data: "0x01" };
  await rig.learn("eth_call", [call]);
  // Calls to the node are not counted: earlier calls may still be learned.
  const reruns = await rig.events("recomputed");
  await rig.mine();
  assert.equal(await rig.compare("eth_call", [call]), true);
  assert.equal(await rig.events("recomputed"), reruns + 1);
});

test("a call whose result depends on its gas is always asked, unless it names its gas", async () => {
  await rig.refuse("eth_call", [{ to: GAS_READER }], "gas");
  await rig.mine();
  assert.equal(await rig.compare("eth_call", [{ to: GAS_READER }]), false);
  const limited = { to: GAS_READER, gas: "0x20000" };
  await rig.learn("eth_call", [limited]);
  await rig.mine();
  assert.equal(await rig.compare("eth_call", [limited]), true);
});

test("an answer that depends on the emptiness of an account ends when the account is funded", async () => {
  const call = { to: HASH_READER, gas: "0x30000" };
  await rig.learn("eth_call", [call]);
  await rig.send(NEW_ACCOUNT, "0x", 1n);
  await rig.compare("eth_call", [call]);
  assert.equal((await rig.ask("eth_call", [call])).result, keccak256("0x"));
});

test("keys that the client overrides do not end an answer", async () => {
  const token = placed.address("One");
  const slot = keccak256(`${pad(OWNER)}${"0".repeat(64)}`);
  const params = [
    { to: token, data: placed.encode("Token", "balanceOf", [OWNER]) },
    { [token]: { stateDiff: { [slot]: pad(toHex(77)) } } },
  ];
  await rig.learn("eth_call", params);
  const reruns = await rig.events("recomputed");
  await mint("One", OWNER);
  assert.equal(await rig.compare("eth_call", params), true);
  assert.equal(await rig.events("recomputed"), reruns);
});

test("calls with block overrides, authorizations or errors are always asked", async () => {
  const data = placed.encode("Token", "balanceOf", [OWNER]);
  const to = placed.address("One");
  const authorization = { chainId: "0x1", address: to, nonce: "0x0", yParity: "0x0", r: "0x1", s: "0x1" };
  for (const params of [
    [{ to, data }, {}, { number: "0x1" }],
    [{ to, data, authorizationList: [authorization] }],
    [{ to, data: "0x12345678" }],
  ]) {
    for (let count = 0; count < 4; count++) {
      await rig.mine();
      assert.equal(await countAsked(() => rig.ask("eth_call", params)), 1, JSON.stringify(params));
    }
  }
});

test("an estimate survives blocks that write nothing that it depends on", async () => {
  const call = { from: OTHER, to: OWNER, value: "0x0" };
  await rig.learn("eth_estimateGas", [call]);
  const asked = await countAsked(async () => {
    await mint("One", OTHER);
    assert.equal(await rig.compare("eth_estimateGas", [call]), true);
  }, "eth_estimateGas");
  assert.equal(asked, 0);
});

test("a reorganisation ends answers of the blocks that it removed", async () => {
  const call = balancesCall(OWNER);
  await rig.learn("eth_call", [call]);
  const snapshot = await anvil.call("evm_snapshot");
  await mint("One", OWNER);
  await rig.compare("eth_call", [call]);
  await anvil.call("evm_revert", snapshot);
  await anvil.call("evm_increaseTime", 7);
  await rig.mine();
  await rig.mine();
  await rig.compare("eth_call", [call]);
  await mint("Two", OWNER);
  await rig.compare("eth_call", [call]);
});

test("no-cache asks the node", async () => {
  const call = balancesCall(OWNER);
  await rig.learn("eth_call", [call]);
  await rig.mine();
  assert.equal(await rig.compare("eth_call", [call]), true);
  const request = { jsonrpc: "2.0", id: 1, method: "eth_call", params: [call, "latest"] };
  const asked = await countAsked(() =>
    fetch(rig.service.url, {
      method: "POST",
      headers: { "content-type": "application/json", "cache-control": "no-cache" },
      body: JSON.stringify(request),
    }),
  );
  assert.equal(asked, 1);
  await until(async () => (await rig.events("sampled")) === 1, "the answer is compared");
  assert.equal(await rig.events("differed"), 0);
});
