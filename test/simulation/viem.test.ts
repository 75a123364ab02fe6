import assert from "node:assert/strict";
import { join } from "node:path";
import { after, test } from "node:test";
import { createPublicClient, custom, parseAbi } from "viem";
import { foundry } from "viem/chains";
import type { HeaderFields } from "../../src/core/heads.ts";
import { parseBaseBlock } from "../../src/simulation/simulatedHeader.ts";
import { startAnvil } from "../devnet/anvil.ts";
import { compile } from "../support/builders/compile.ts";
import { countedFetch } from "../support/fakes/countedFetch.ts";
import { createSimulationRig } from "../support/fakes/simulationRig.ts";
import { deploy } from "../support/servers/deployed.ts";

const anvil = await startAnvil(["--hardfork", "prague", "--no-mining"]);
const contracts = compile(join(import.meta.dirname, "../evm/Contracts.sol"), "prague");
const placed = await deploy(anvil, contracts, [
  ["Token", "PausableToken", () => []],
  ["Caller", "Caller", () => []],
]);
await placed.send(placed.address("Token"), placed.encode("Token", "mint", [placed.sender, 1_000n]));
const block = parseBaseBlock((await anvil.call("eth_getBlockByNumber", "latest", false)) as HeaderFields);
const rig = createSimulationRig(block, countedFetch(anvil).fetch);
after(async () => {
  await rig.close();
  await anvil.close();
});

/** Simulations are executed locally. The node answers other methods. */
const client = createPublicClient({
  chain: foundry,
  transport: custom({
    request: async ({ method, params = [] }: { method: string; params?: readonly unknown[] }) => {
      if (method === "eth_simulateV1") {
        return rig.simulate(params);
      }
      if (method === "eth_call") {
        return rig.call(params);
      }
      return anvil.call(method, ...params);
    },
  }),
});
const abi = parseAbi([
  "function transfer(address to, uint256 value) returns (bool)",
  "function fail(uint256 how)",
  "error Insufficient(uint256 have, uint256 want)",
]);
const receiver = `0x${"7e".repeat(20)}` as const;
const token = placed.address("Token");

test("simulateBlocks returns results, logs, and a decoded revert", async () => {
  const [first, second] = await client.simulateBlocks({
    blocks: [
      {
        calls: [
          { account: placed.sender, to: token, abi, functionName: "transfer", args: [receiver, 400n] },
          { account: placed.sender, to: token, abi, functionName: "transfer", args: [receiver, 601n] },
        ],
      },
      {
        blockOverrides: { number: block.number + 9n },
        calls: [{ account: placed.sender, to: placed.address("Caller"), abi, functionName: "fail", args: [0n] }],
      },
    ],
  });
  assert.equal(first?.number, block.number + 1n);
  assert.equal(first?.calls[0]?.status, "success");
  assert.equal(first?.calls[0]?.result, true);
  assert.equal(first?.calls[0]?.logs?.length, 1);
  assert.equal(first?.calls[1]?.status, "failure");
  assert.match(String(first?.calls[1]?.error), /Insufficient\(uint256 have, uint256 want\)\s+\(600, 601\)/);
  assert.equal(second?.number, block.number + 9n);
  assert.match(String(second?.calls[0]?.error), /because/);
});

test("simulateCalls with traceAssetChanges returns the changed balances of the account", async () => {
  const { results, assetChanges } = await client.simulateCalls({
    account: placed.sender,
    traceAssetChanges: true,
    calls: [
      { to: receiver, value: 1_000n },
      { to: token, abi, functionName: "transfer", args: [receiver, 7n] },
    ],
  });
  assert.deepEqual(
    results.map(({ status }) => status),
    ["success", "success"],
  );
  assert.deepEqual(
    assetChanges.map(({ token: { address }, value: { diff } }) => [address.toLowerCase(), diff]),
    [
      ["0xeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee", -1_000n],
      [token.toLowerCase(), -7n],
    ],
  );
});
