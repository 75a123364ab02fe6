import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";
import type { HeaderFields } from "../../src/core/heads.ts";
import { MustForwardError } from "../../src/core/mustForwardError.ts";
import { fixedForks } from "../../src/ethereum/chainForks.ts";
import {
  type Address,
  type Data,
  formatQuantity,
  parseData,
  type Quantity,
  ZERO_HASH,
} from "../../src/ethereum/hex.ts";
import { keccak256Hex } from "../../src/ethereum/keccak.ts";
import type { AccessListEntry } from "../../src/ethereum/transaction.ts";
import { createEngines } from "../../src/evm/createEngines.ts";
import { RpcError } from "../../src/jsonrpc/rpcError.ts";
import { runSimulation, type SimulationInput } from "../../src/simulation/runSimulation.ts";
import { type BaseBlock, parseBaseBlock } from "../../src/simulation/simulatedHeader.ts";
import { runAccessList, runCall, runEstimate } from "../../src/simulation/simulationRuns.ts";
import { createSimulator } from "../../src/simulation/simulator.ts";
import { knownContext } from "../support/builders/completedRun.ts";
import { PARENT } from "../support/builders/parentBlock.ts";
import { createContext } from "../support/builders/request.ts";
import { readerOf } from "../support/builders/stateRoot.ts";
import { plainSource } from "../support/fakes/plainSource.ts";
import { SIMULATOR_OPTIONS } from "../support/fakes/simulationRig.ts";
import { readyWorkers } from "../support/servers/evmWorkers.ts";
import { maskSimulation } from "../vectors/maskSimulation.ts";

const workers = await readyWorkers();
after(() => workers.close());
const simulatorOf = (fork: "bpo2" | "amsterdam") =>
  createSimulator({ workers, forks: () => fixedForks(1n, fork), nativesAt: () => [], ...SIMULATOR_OPTIONS });
const simulator = simulatorOf("amsterdam");

const SENDER: Address = `0x${"aa".repeat(20)}`;
const RECIPIENT: Address = `0x${"bb".repeat(20)}`;
const CONTRACT: Address = `0x${"cc".repeat(20)}`;
/** Returns SLOTNUM (EIP-7843). */
const CODE = Uint8Array.fromHex("4b5f5260205ff3");
const STATE = new Map(
  [
    { address: SENDER, code: new Uint8Array(0) },
    { address: RECIPIENT, code: new Uint8Array(0) },
    { address: CONTRACT, code: CODE },
  ].map(({ address, code }) => [
    address,
    { nonce: 1n, balance: 10n ** 18n, code, codeHash: keccak256Hex(code), storage: new Map() },
  ]),
);
const BLOCK: BaseBlock = { ...PARENT, slotNumber: 77n, laterFields: ["blockAccessListHash", "slotNumber"] };
const base = (block: BaseBlock) => ({ block, source: plainSource("amsterdam", STATE) });

const text = (...params: readonly unknown[]) => new TextEncoder().encode(JSON.stringify(params));
const CALL = text({ from: SENDER, to: CONTRACT }, "latest");
const never = createContext();
const read = async (answer: Promise<{ readonly body: unknown }>) =>
  JSON.parse(new TextDecoder().decode((await answer).body as Uint8Array));

test("a call on a block of Amsterdam reads the block's slot number", async () => {
  assert.equal(BigInt(await read(simulator.call(CALL, base(BLOCK), never))), 77n);
});

test("a node executes on a block without the header fields of its fork, or with those of a later one", async () => {
  await assert.rejects(simulator.call(CALL, base({ ...BLOCK, laterFields: [] }), never), MustForwardError);
  await assert.rejects(simulatorOf("bpo2").call(CALL, base(BLOCK), never), MustForwardError);
  await assert.rejects(simulator.call(CALL, base({ ...BLOCK, laterFields: ["newRoot"] }), never), MustForwardError);
});

/** The gas that go-ethereum charges (test/evm/amsterdam.json). */
test("the estimate of a transfer is its price", async () => {
  const estimate = (to: Address) =>
    read(simulator.estimateGas(text({ from: SENDER, to, value: "0x1" }, "latest"), base(BLOCK), never));
  assert.deepEqual([Number(await estimate(RECIPIENT)), Number(await estimate(SENDER))], [21_000, 12_000]);
});

interface RecordedAccount {
  readonly nonce?: Quantity;
  readonly balance: Quantity;
  readonly code?: Data;
}

interface Recorded {
  readonly genesis: HeaderFields;
  readonly block: HeaderFields;
  readonly state: Readonly<Record<Address, RecordedAccount>>;
  readonly requests: readonly {
    readonly name: string;
    readonly params: unknown;
    readonly result: readonly object[] | { readonly error: object };
  }[];
  readonly calls: readonly {
    readonly method: "eth_call" | "eth_estimateGas" | "eth_createAccessList";
    readonly call: object;
    readonly result: unknown;
  }[];
}

/** The file names the version of go-ethereum. */
const recorded = JSON.parse(readFileSync(join(import.meta.dirname, "amsterdam.json"), "utf8")) as Recorded;
const engine = await createEngines("fast");
const FORKS = fixedForks(1_337n, "amsterdam");
const genesis = parseBaseBlock(recorded.genesis);
const reader = readerOf(
  new Map(
    Object.entries(recorded.state).map(([address, { nonce = "0x0", balance, code: data = "0x" }]) => {
      const code = parseData(data);
      const fields = { nonce: BigInt(nonce), balance: BigInt(balance), code, codeHash: keccak256Hex(code) };
      return [address as Address, { ...fields, storage: new Map() }];
    }),
  ),
  () => genesis.hash,
);

const runOf = { eth_call: runCall, eth_estimateGas: runEstimate, eth_createAccessList: runAccessList };

/** Runs a call as a worker does. Quantities are formatted as in a response. */
const runMethod = async (method: keyof typeof runOf, call: object): Promise<unknown> => {
  const input = { paramsText: text(call, "0x0"), block: genesis, forks: FORKS, gasCap: 50_000_000n };
  try {
    const output = await runOf[method](input, knownContext(engine, reader));
    return JSON.parse(
      JSON.stringify(output, (_, value) => (typeof value === "bigint" ? formatQuantity(value) : value)),
    );
  } catch (error) {
    assert.ok(error instanceof RpcError);
    return { error: { code: error.code, message: error.message, data: error.data ?? null } };
  }
};

/** geth's access list has the order of a Go map. */
const sorted = (result: unknown): unknown => {
  const { accessList } = result as { readonly accessList?: readonly AccessListEntry[] };
  const inOrder = accessList?.toSorted((one, other) => (one.address < other.address ? -1 : 1));
  return accessList === undefined ? result : { ...(result as object), accessList: inOrder };
};

for (const [at, { method, call, result }] of recorded.calls.entries()) {
  test(`${method} on Amsterdam as in go-ethereum: ${at}`, async () => {
    assert.deepEqual(sorted(await runMethod(method, call)), sorted(result));
  });
}

const simulate = async (params: unknown): Promise<Readonly<Record<string, unknown>>> => {
  const input: SimulationInput = {
    paramsText: text(params, "0x0"),
    parent: genesis,
    forks: FORKS,
    profile: "geth",
    errorShape: "object",
    timeStep: 12n,
    maxBlocks: 256,
    maxCalls: 5_000,
    gasCap: 50_000_000n,

    maxResponseBytes: 16 * 1024 * 1024,
  };
  try {
    const output = await runSimulation(input, knownContext(engine, reader));
    return { result: JSON.parse(new TextDecoder().decode(output)) };
  } catch (error) {
    assert.ok(error instanceof RpcError);
    return { error: { code: error.code, message: error.message } };
  }
};

/** The hash of the access list needs the whole state, as the state root does. */
const withoutAccessList = (masked: unknown): unknown =>
  Array.isArray(masked) ? masked.map((block) => ({ ...block, blockAccessListHash: "masked" })) : masked;

/** Blocks of go-ethereum since 1.17.8 have a slot, of one byte here. A simulated block of forebay is in no slot. */
const withoutSlots = (masked: unknown): unknown =>
  Array.isArray(masked)
    ? masked.map(({ slotNumber, size, ...block }) => {
        assert.ok(BigInt(slotNumber) < 0x80n);
        return { ...block, size: formatQuantity(BigInt(size) - 1n) };
      })
    : masked;

/** In these, go-ethereum since 1.17.8 lifts the cap of execution, because there is no validation. Forebay never does. */
const LIFTED = /above the cap of execution, without validation/;

for (const { name, params, result } of recorded.requests.filter((each) => !LIFTED.test(each.name))) {
  test(`a simulation on Amsterdam as in go-ethereum: ${name}`, async () => {
    const [ours, theirs] = [await simulate(params), "error" in result ? result : { result }].map((each) =>
      withoutAccessList(maskSimulation(each)),
    );
    assert.deepEqual(ours, withoutSlots(theirs));
  });
}

/** As in the recorded simulations with validation. GAS is what is left of the cap. */
const CAPPED: Readonly<Record<string, { readonly gas?: bigint; readonly gasUsed: bigint; readonly used: bigint }>> = {
  "gas above the cap of execution, without validation": { gas: 0xffc566n, gasUsed: 15_015n, used: 30_030n },
  "a halted call with gas above the cap of execution, without validation": { gasUsed: 2n ** 24n, used: 2n ** 25n },
};

for (const { name, params } of recorded.requests.filter((each) => LIFTED.test(each.name))) {
  test(`execution is charged at most 2^24 gas on Amsterdam: ${name}`, async () => {
    const { result } = await simulate(params);
    const [block] = result as { readonly gasUsed: Quantity; readonly calls: readonly Record<string, Quantity>[] }[];
    const expected = CAPPED[name];
    assert.ok(block !== undefined && expected !== undefined && block.calls.length > 1);
    assert.equal(BigInt(block.gasUsed), expected.used);
    for (const { gasUsed = "0x0", returnData } of block.calls) {
      assert.equal(BigInt(gasUsed), expected.gasUsed);
      assert.ok(expected.gas === undefined || BigInt(returnData ?? "0x0") === expected.gas);
    }
  });
}

test("the gas limit of a call may use all state gas of a block, also without validation", async () => {
  const limit = 2n ** 25n;
  const blockOf = (gas: bigint) => ({
    blockStateCalls: [
      {
        blockOverrides: { gasLimit: formatQuantity(limit) },
        calls: [{ to: RECIPIENT }, { to: RECIPIENT, gas: formatQuantity(gas) }],
      },
    ],
  });
  // The first call has used execution gas alone.
  assert.ok((await simulate(blockOf(limit))).error === undefined);
  const { error } = await simulate(blockOf(limit + 1n));
  assert.equal((error as { readonly code: number }).code, -38_015);
});

test("a simulated block of Amsterdam has zero as the hash of its access list", async () => {
  const { result } = await simulate({ blockStateCalls: [{}] });
  assert.equal((result as HeaderFields[])[0]?.blockAccessListHash, ZERO_HASH);
});
