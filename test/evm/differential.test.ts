import assert from "node:assert/strict";
import { join } from "node:path";
import { after, test } from "node:test";
import type { AbiFunction } from "viem";
import { fixedForks } from "../../src/chain/ethereumForks.ts";
import type { HeaderFields } from "../../src/chain/heads.ts";
import { type Address, formatData, type Hex, parseData } from "../../src/chain/hex.ts";
import { rulesAt } from "../../src/chain/rules.ts";
import { applyTransaction, type TransactionResult } from "../../src/evm/applyTransaction.ts";
import { createKnownState } from "../../src/evm/knownState.ts";
import { createNodeState } from "../../src/evm/nodeState.ts";
import { createReferenceEngine } from "../../src/evm/referenceEngine.ts";
import { settle } from "../../src/evm/settle.ts";
import { StateOverlay } from "../../src/evm/stateOverlay.ts";
import { parseParent } from "../../src/simulate/parentBlock.ts";
import { startAnvil } from "../devnet/anvil.ts";
import { compile } from "../support/compile.ts";
import { deploy } from "../support/deployed.ts";
import { createRandom, pick, randomValue } from "../support/randomValues.ts";

const CALLS = 500;
const SEED = 20_261_120;
const GAS = 3_000_000n;
const CHAIN_ID = 31_337n;
const SLOTS_OF_PROXY = 1_000_000n;

const anvil = await startAnvil(["--hardfork", "osaka", "--no-mining"]);
after(() => anvil.close());

const contracts = compile(join(import.meta.dirname, "Contracts.sol"), "osaka");
const none = () => [];
const placed = await deploy(anvil, contracts, [
  ["Token", "Token", none],
  ["Other", "Token", none],
  ["Pausable", "PausableToken", none],
  ["Wrapped", "Wrapped", none],
  ["Proxy", "Proxy", (at) => [at("Token")]],
  ["Beacon", "Beacon", (at) => [at("Token")]],
  ["BeaconProxy", "BeaconProxy", (at) => [at("Beacon")]],
  ["Cloner", "Cloner", none],
  ["Factory", "Factory", none],
  ["Pair", "Pair", (at) => [at("Token"), at("Other")]],
  ["Router", "Router", none],
  ["Hasher", "Hasher", none],
  ["Precompiles", "Precompiles", none],
  ["Slots", "Slots", none],
  ["Vault", "Vault", (at) => [at("Token")]],
  ["Multicall", "Multicall", none],
  ["Merkle", "Merkle", none],
  ["Ballot", "Ballot", none],
  ["Nft", "Nft", none],
  ["Numbers", "Numbers", none],
  ["Caller", "Caller", none],
  ["Transient", "Transient", none],
  ["Environment", "Environment", none],
]);
/** Which contract's functions a placed one answers to. */
const SPEAKS = new Map([
  ["Other", "Token"],
  ["Pausable", "PausableToken"],
  ["Proxy", "Token"],
  ["BeaconProxy", "Token"],
]);
const NAMES = [
  ...[
    "Token",
    "Pausable",
    "Wrapped",
    "Proxy",
    "BeaconProxy",
    "Cloner",
    "Factory",
    "Pair",
    "Router",
    "Hasher",
    "Precompiles",
  ],
  ...["Slots", "Vault", "Multicall", "Merkle", "Ballot", "Nft", "Numbers", "Caller", "Transient", "Environment"],
];

for (const name of ["Token", "Other", "Pausable", "Proxy", "BeaconProxy"]) {
  await placed.send(placed.address(name), placed.encode("Token", "mint", [placed.sender, SLOTS_OF_PROXY]));
  for (const spender of ["Pair", "Router", "Vault"]) {
    await placed.send(placed.address(name), placed.encode("Token", "approve", [placed.address(spender), 1n << 200n]));
  }
}
await placed.send(placed.address("Token"), placed.encode("Token", "transfer", [placed.address("Pair"), 100_000n]));
await placed.send(placed.address("Other"), placed.encode("Token", "transfer", [placed.address("Pair"), 200_000n]));
await placed.send(placed.address("Pair"), placed.encode("Pair", "sync", []));
await placed.send(placed.address("Vault"), placed.encode("Vault", "deposit", [5_000n]));
await placed.send(placed.address("Slots"), placed.encode("Slots", "fill", [7n, 3n]));
await placed.send(placed.address("Nft"), placed.encode("Nft", "mintMany", [0n, 9n]));

const block = parseParent((await anvil.call("eth_getBlockByNumber", "latest", false)) as HeaderFields);
const engine = createReferenceEngine(rulesAt(fixedForks(CHAIN_ID, "osaka"), block.number, block.timestamp));
const nodeState = createNodeState({
  maxBytes: 64 * 1024 * 1024,
  fetch: async (calls) => {
    const batch = calls.map(({ method, params }, id) => ({ jsonrpc: "2.0", id, method, params }));
    const answers: { id: number; result?: unknown; error?: { message: string } }[] = JSON.parse(
      await anvil.post(JSON.stringify(batch)),
    );
    return answers
      .toSorted((a, b) => a.id - b.id)
      .map(({ result, error }) => (error === undefined ? result : new Error(error.message)));
  },
});
const source = nodeState.at(block);
const known = createKnownState({ codes: new Map(), isNative: () => false });

interface Plain {
  readonly from: Address;
  readonly to: Address;
  readonly data: Hex;
  readonly value: Hex;
  readonly gas: Hex;
}

const run = async (call: Plain): Promise<TransactionResult> => {
  const { result } = await settle(
    known,
    (keys) => source.read(keys, new AbortController().signal),
    (reader) =>
      applyTransaction(
        engine,
        new StateOverlay(reader),
        {
          number: block.number,
          timestamp: block.timestamp,
          coinbase: block.miner,
          gasLimit: block.gasLimit,
          // Unlike geth it shows the base fee to a call without a price.
          baseFee: block.baseFeePerGas ?? 0n,
          prevRandao: block.mixHash,
          blobBaseFee: 1n,
          blockHash: (number) => (number === block.number ? block.hash : reader.blockHash(number)),
        },
        {
          type: 2,
          from: call.from,
          to: call.to,
          nonce: 0n,
          gas: GAS,
          value: BigInt(call.value),
          input: parseData(call.data),
          maxFeePerGas: 0n,
          maxPriorityFeePerGas: 0n,
          accessList: [],
          maxFeePerBlobGas: 0n,
          blobVersionedHashes: [],
          authorizationList: [],
        },
        { checks: { nonce: false, sender: false, freeGas: true } },
      ),
  );
  return result;
};

const lower = (address: string): Address => address.toLowerCase() as Address;

const randomCall = (random: () => number): Plain => {
  const name = pick(random, NAMES);
  const abi = contracts.get(SPEAKS.get(name) ?? name)?.abi ?? [];
  const functions = abi.filter((item): item is AbiFunction => item.type === "function");
  const chosen = pick(random, functions);
  const addresses = [placed.sender, ...NAMES.map((other) => placed.address(other))];
  const args = chosen.inputs.map((input) => randomValue(random, input, addresses));
  const value = chosen.stateMutability === "payable" && random() < 0.7 ? BigInt(Math.floor(random() * 1_000)) : 0n;
  return {
    from: lower(placed.sender),
    to: lower(placed.address(name)),
    data: placed.encode(SPEAKS.get(name) ?? name, chosen.name, args),
    value: `0x${value.toString(16)}`,
    gas: `0x${GAS.toString(16)}`,
  };
};

interface Trace {
  readonly gasUsed: Hex;
  readonly output?: Hex;
  readonly error?: string;
}

test(`${CALLS} random calls over ${NAMES.length} contracts: success, return data and gas as anvil has them`, async () => {
  const random = createRandom(SEED);
  const calls = Array.from({ length: CALLS }, () => randomCall(random));
  const traces = (await anvil.callAll(
    "debug_traceCall",
    calls.map((call) => [call, "latest", { tracer: "callTracer" }]),
  )) as Trace[];
  const counts = new Map<string, number>();
  const differing: string[] = [];
  for (const [at, call] of calls.entries()) {
    const trace = traces[at];
    if (trace === undefined) throw new Error("no trace");
    const ours = await run(call);
    const got = { isSuccess: ours.status === "success", output: formatData(ours.returnData), gasUsed: ours.gasUsed };
    const want = { isSuccess: trace.error === undefined, output: trace.output ?? "0x", gasUsed: BigInt(trace.gasUsed) };
    counts.set(ours.status, (counts.get(ours.status) ?? 0) + 1);
    const isEqual = got.isSuccess === want.isSuccess && got.output === want.output && got.gasUsed === want.gasUsed;
    if (!isEqual) {
      const told = {
        got: { ...got, gasUsed: `${got.gasUsed}`, halt: ours.halt },
        want: { ...want, gasUsed: `${want.gasUsed}`, error: trace.error },
      };
      differing.push(`${JSON.stringify(call).slice(0, 400)} ${JSON.stringify(told)}`);
    }
  }
  assert.deepEqual(differing, []);
  // A generator that only makes failing calls would show nothing.
  assert.ok((counts.get("success") ?? 0) > CALLS / 4, JSON.stringify(Object.fromEntries(counts)));
});
