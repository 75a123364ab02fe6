import assert from "node:assert/strict";
import { test } from "node:test";
import { NodeError } from "../../../src/core/node.ts";
import type { Address, Hash } from "../../../src/ethereum/hex.ts";
import { CallChecks, type LocalResult } from "../../../src/state/calls/callChecks.ts";
import { defaultsCalls, parseDefaults } from "../../../src/state/calls/nodeDefaults.ts";
import type { StateFetcher } from "../../../src/state/fetch/stateFetcher.ts";
import type { StateDifference } from "../../../src/state/originComparison.ts";
import { StateChecks } from "../../../src/state/stateChecks.ts";
import type { StateKey } from "../../../src/state/stateKey.ts";
import { createTelemetry } from "../../../src/telemetry/telemetry.ts";
import { fetchedValues } from "../../support/builders/nodeState.ts";
import { createCost } from "../costRig.ts";

const CONTRACT: Address = `0x${"c0".repeat(20)}`;
const HASH: Hash = `0x${"7".repeat(64)}`;
const CODE = "5".repeat(64);
const BALANCE: StateKey = { field: "balance", address: CONTRACT, slot: undefined };
const RESULT: LocalResult = {
  key: JSON.stringify(["eth_call", [{ to: CONTRACT }, null]]),
  method: "eth_call",
  block: { number: 7n, hash: HASH },
  body: Buffer.from('"0xab"'),
  reads: { keys: [], emptiness: [], addresses: new Set(), blockOpcodes: new Set() },
  node: "one",
  isProven: false,
};

interface RigOptions {
  /** The outcomes of the node, one after the other. */
  readonly outcomes: readonly unknown[];
  /** The value that a read set is compared with. Default: the known one. */
  readonly actual?: string;
}

/** Checks of calls, with what they found. */
const createRig = ({ outcomes, actual = CODE }: RigOptions) => {
  const { cost, clock } = createCost({ random: () => 0 });
  const left = [...outcomes];
  const asked: unknown[] = [];
  const found: unknown[] = [];
  const forgotten: string[] = [];
  const wrong: StateDifference[] = [];
  let clears = 0;
  const { log, metrics } = createTelemetry({ level: "silent" });
  const error = (fields: object): void => {
    if ("actual" in fields) {
      found.push(fields.actual);
    }
  };
  const read = async (keys: readonly StateKey[]) =>
    fetchedValues({ values: new Map(keys.map((key) => [key, actual])) });
  const fetch: StateFetcher["fetch"] = async (_keys, _block, { further = [] } = {}) => {
    asked.push(...further.map(({ params }) => params));
    return fetchedValues({ outcomes: [left.shift()] });
  };
  const checks = new CallChecks({
    ...{ chain: "chain", cost, follower: { generation: 0 } },
    comparison: {
      nodeBeside: (name) => ({
        name: `beside ${name}`,
        origin: "other",
        available: true,
        reader: { unitsFor: () => 0, read, readSingly: read, fetch },
      }),
    },
    values: { get: () => CODE },
    table: { clear: () => clears++ },
    differences: { handle: (difference) => wrong.push(difference) },
    telemetry: { log: Object.assign(Object.create(log), { error }), metrics },
    forget: ({ key }) => forgotten.push(key),
  });
  const settled = () => new Promise(setImmediate);
  const counted = async () =>
    (await metrics.stateDifferences.get()).values.flatMap(({ value, labels }) =>
      value > 0 ? [`${labels.kind} ${labels.proof} ${value}`] : [],
    );
  return { checks, clock, asked, found, forgotten, wrong, settled, counted, clears: () => clears };
};

/** Returns the differences that one sample finds. */
const sample = async (outcome: unknown): Promise<readonly unknown[]> => {
  const { checks, asked, found, forgotten, settled } = createRig({ outcomes: [outcome] });
  checks.onLocalResult(RESULT);
  checks.onLocalResult(RESULT);
  await settled();
  assert.deepEqual(asked, [[{ to: CONTRACT }, { blockHash: HASH }]], "one call a second, at the block of the result");
  assert.deepEqual(forgotten, [], "the result does not depend on a BLOCKHASH");
  return found;
};

test("a sample compares the bytes, and a failed call differs", async () => {
  assert.deepEqual(await sample("0xAB"), []);
  assert.deepEqual(await sample("0xac"), ["0xac"]);
  assert.deepEqual(await sample(new NodeError("revert", "node", "execution reverted")), ["execution reverted"]);
  assert.deepEqual(await sample(new NodeError("timeout", "node", "late")), []);
});

for (const [second, differences] of [
  ["0xab", []],
  ["0xac", ["0xac"]],
  [undefined, []],
] as const) {
  test(`a BLOCKHASH that is zero once is no difference: then ${second}`, async () => {
    const { checks, found, forgotten, settled } = createRig({ outcomes: ["0x00", second] });
    checks.onLocalResult({ ...RESULT, reads: { ...RESULT.reads, blockOpcodes: new Set(["BLOCKHASH"]) } });
    await settled();
    assert.deepEqual([found, forgotten], [differences, [RESULT.key]]);
  });
}

test("one local result in 100 is compared, reads and calls together at most once a second", async () => {
  const { cost, used, clock } = createCost();
  const startMs = clock.nowMs;
  const asked: string[] = [];
  const read = async () => {
    asked.push("read");
    return fetchedValues();
  };
  const fetch: StateFetcher["fetch"] = async () => {
    asked.push("call");
    return fetchedValues();
  };
  const reader = { unitsFor: () => 0, read, readSingly: read, fetch };
  const node = { name: "one", origin: "one", available: true, reader };
  const telemetry = createTelemetry({ level: "silent" });
  const comparison = { nextNode: () => node, nodeBeside: () => node };
  const shared = { chain: "chain", cost, telemetry, comparison, differences: { handle: () => undefined } };
  const reads = new StateChecks({
    ...shared,
    values: { used, head: undefined, get: () => undefined, hasProof: () => false, sourceOf: () => undefined },
  });
  const calls = new CallChecks({
    ...{ ...shared, follower: { generation: 0 }, table: { clear: () => undefined } },
    values: { get: () => undefined },
    forget: () => undefined,
  });
  const considerBoth = () => {
    reads.onLocalRead({ field: "balance", address: CONTRACT, slot: undefined }, RESULT.block, {
      body: Buffer.from('"0x1"'),
    });
    calls.onLocalResult(RESULT);
  };
  considerBoth();
  assert.deepEqual(asked, []);
  clock.random = 0.005;
  considerBoth();
  assert.deepEqual(asked, ["read"]);
  clock.nowMs = startMs + 999;
  considerBoth();
  clock.nowMs = startMs + 1_000;
  calls.onLocalResult(RESULT);
  considerBoth();
  assert.deepEqual(asked, ["read", "call"]);
});

test("a proven result that a node contradicts is counted, also if a value that it read is wrong", async () => {
  const reads = { ...RESULT.reads, keys: [BALANCE] };
  for (const [isProven, actual, expected] of [
    [true, CODE, ["call proven 1"]],
    [true, "7".repeat(64), ["call proven 1"]],
    [false, CODE, []],
  ] as const) {
    const { checks, counted } = createRig({ outcomes: [], actual });
    await checks.compare({ ...RESULT, reads, isProven }, "0xac");
    assert.deepEqual(await counted(), expected);
  }
});

test("proven results are sampled a tenth as often", async () => {
  const { checks, clock, asked, settled } = createRig({ outcomes: ["0xab", "0xab", "0xab"] });
  const startMs = clock.nowMs;
  const offered = { ...RESULT, isProven: true };
  for (const afterMs of [0, 1_000, 9_999, 10_000]) {
    clock.nowMs = startMs + afterMs;
    checks.onLocalResult(offered);
  }
  await settled();
  assert.equal(asked.length, 2);
});

/** Reports a result that reads one value. The node has another result. */
const report = async (actual: string) => {
  const { checks, wrong, clears } = createRig({ outcomes: [], actual });
  await checks.compare({ ...RESULT, reads: { ...RESULT.reads, keys: [BALANCE] } }, "0xac");
  return { wrong, clears: clears(), isForwarded: checks.isForwarded(RESULT.key, RESULT.block) };
};

test("a difference with a wrong value drops all values", async () => {
  const actual = "7".repeat(64);
  const wrong = { key: BALANCE, block: RESULT.block, known: CODE, actual, node: "beside one" };
  assert.deepEqual(await report(actual), { wrong: [wrong], clears: 1, isForwarded: false });
});

test("a difference with right values leaves the code to the nodes", async () => {
  assert.deepEqual(await report(CODE), { wrong: [], clears: 1, isForwarded: true });
});

const word = (value: bigint): string => value.toString(16).padStart(64, "0");
const HEADER = { miner: CONTRACT, timestamp: "0x64", number: "0x7", mixHash: HASH, gasLimit: "0x1c9c380" };
/** GAS, ORIGIN, CALLER, GASPRICE, COINBASE, TIMESTAMP, NUMBER, PREVRANDAO, GASLIMIT, BASEFEE, the balance of ORIGIN, BLOBBASEFEE. */
const wordsOf = (caller: bigint, number: bigint, baseFee: bigint, balance = 2n ** 96n - 1n): readonly bigint[] => [
  ...[49_978_998n, 0n, caller, 0n, BigInt(CONTRACT), 100n, number, BigInt(HASH), 30_000_000n, baseFee, balance, 1n],
];
const resultOf = (words: readonly bigint[]): string => `0x${words.map(word).join("")}`;

test("the defaults of a node are its gas, its sender, and the opcodes that return the header's values", () => {
  const geth = parseDefaults([resultOf(wordsOf(0n, 7n, 0n))], HEADER);
  assert.equal(geth?.gas, 50_000_000n);
  assert.equal(geth.hasZeroSender, true);
  assert.deepEqual([...geth.fromHeader].sort(), [
    "BASEFEE",
    "COINBASE",
    "GASLIMIT",
    "NUMBER",
    "PREVRANDAO",
    "TIMESTAMP",
  ]);
  const charging = parseDefaults([resultOf(wordsOf(0n, 7n, 0n, 1n))], HEADER);
  assert.equal(charging?.hasZeroSender, false, "an answer depends on the balance of the sender that pays");
  const other = parseDefaults([resultOf(wordsOf(5n, 99n, 8n))], HEADER);
  assert.equal(other?.hasZeroSender, false);
  assert.deepEqual([...other.fromHeader].sort(), ["COINBASE", "GASLIMIT", "PREVRANDAO", "TIMESTAMP"]);
});

test("a node without blobs shows its defaults in the second call, and one without overrides shows none", () => {
  const [first, second] = defaultsCalls(RESULT.block);
  assert.notDeepEqual(first?.params, second?.params);
  const older = resultOf(wordsOf(0n, 7n, 0n).slice(0, -1));
  assert.equal(parseDefaults([new Error("invalid opcode"), older], HEADER)?.gas, 50_000_000n);
  assert.equal(parseDefaults(["0x", "0x"], HEADER), undefined);
});
