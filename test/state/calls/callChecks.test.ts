import assert from "node:assert/strict";
import { test } from "node:test";
import { NodeError } from "../../../src/core/node.ts";
import type { Address, Hash } from "../../../src/ethereum/hex.ts";
import { CallChecks, type LocalResult } from "../../../src/state/calls/callChecks.ts";
import { defaultsCalls, parseDefaults } from "../../../src/state/calls/nodeDefaults.ts";
import type { FetchedValues, StateFetcher } from "../../../src/state/fetch/stateFetcher.ts";
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
  grade: "checked",
};

interface RigOptions {
  /** The outcomes of the node, one after the other. */
  readonly outcomes: readonly unknown[];
  /** Whether the audit finds the values of a read set right. Default: true. */
  readonly areRight?: boolean;
  readonly isSampled?: boolean;
}

/** Checks of calls, with what they found. */
const createRig = ({ outcomes, areRight = true, isSampled = true }: RigOptions) => {
  const { cost } = createCost();
  const left = [...outcomes];
  const asked: unknown[] = [];
  const found: unknown[] = [];
  const forgotten: string[] = [];
  const compared: (readonly StateKey[])[] = [];
  const reads: StateKey[] = [];
  let clears = 0;
  const { log, metrics } = createTelemetry({ level: "silent" });
  const error = (fields: object): void => {
    if ("actual" in fields) {
      found.push(fields.actual);
    }
  };
  const read = async () => fetchedValues();
  const fetch: StateFetcher["fetch"] = async (_keys, _block, further = []) => {
    asked.push(...further.map(({ params }) => params));
    return fetchedValues({ outcomes: [left.shift()] });
  };
  const checks = new CallChecks({
    ...{ chain: "chain", cost, follower: { generation: 0 } },
    audit: {
      nodeBeside: (name) => ({
        name: `beside ${name}`,
        origin: "other",
        reader: { unitsFor: () => 0, read, readSingly: read, fetch },
      }),
      takeSample: () => isSampled,
      onLocalRead: (key) => reads.push(key),
      compare: async (_kind, _node, known: FetchedValues["values"]) => {
        compared.push([...known.keys()]);
        return areRight;
      },
    },
    values: { get: () => CODE },
    table: { clear: () => clears++ },
    telemetry: { log: Object.assign(Object.create(log), { error }), metrics },
    forget: ({ key }) => forgotten.push(key),
  });
  const settled = () => new Promise(setImmediate);
  const counted = async () =>
    (await metrics.stateDifferences.get()).values.flatMap(({ value, labels }) =>
      value > 0 ? [`${labels.kind} ${labels.proof} ${value}`] : [],
    );
  return { checks, asked, found, forgotten, compared, reads, settled, counted, clears: () => clears };
};

/** Returns what one sample reports, with the calls of the node. */
const sample = async (...outcomes: readonly unknown[]) => {
  const { checks, asked, found, forgotten, settled } = createRig({ outcomes });
  checks.onLocalResult(RESULT);
  await settled();
  for (const params of asked) {
    assert.deepEqual(params, [{ to: CONTRACT }, { blockHash: HASH }], "at the block of the result");
  }
  return { found, asked: asked.length, forgotten: forgotten.length };
};

test("a sample compares the bytes, and a failed call differs", async () => {
  assert.deepEqual(await sample("0xAB"), { found: [], asked: 1, forgotten: 0 });
  assert.deepEqual(await sample("0xac", "0xac"), { found: ["0xac"], asked: 2, forgotten: 1 });
  const reverted = new NodeError("revert", "node", "execution reverted");
  assert.deepEqual((await sample(reverted, reverted)).found, ["execution reverted"]);
  assert.deepEqual((await sample(new NodeError("timeout", "node", "late"))).found, []);
});

test("a result that differs once, as with a BLOCKHASH that is zero, is no difference", async () => {
  for (const second of ["0xab", undefined]) {
    assert.deepEqual(await sample("0x00", second), { found: [], asked: 2, forgotten: 1 });
  }
});

test("each result without a proof lets one of its values be checked, and only samples are compared", async () => {
  const { checks, asked, reads, settled } = createRig({ outcomes: [], isSampled: false });
  const result = { ...RESULT, reads: { ...RESULT.reads, keys: [BALANCE] } };
  checks.onLocalResult(result);
  checks.onLocalResult({ ...result, grade: "proven" });
  checks.onLocalResult(RESULT);
  await settled();
  assert.deepEqual([reads, asked], [[BALANCE], []]);
});

test("a proven result that a node contradicts is counted, also if a value that it read is wrong", async () => {
  for (const [isProven, areRight, expected] of [
    [true, true, ["call proven 1"]],
    [true, false, ["call proven 1"]],
    [false, true, []],
  ] as const) {
    const { checks, counted } = createRig({ outcomes: ["0xac"], areRight });
    await checks.compare({ ...RESULT, grade: isProven ? "proven" : "checked" }, "0xac");
    assert.deepEqual(await counted(), expected);
  }
});

/** Reports a result that reads one value. The node has another result. */
const report = async (areRight: boolean) => {
  const { checks, compared, clears } = createRig({ outcomes: ["0xac"], areRight });
  await checks.compare({ ...RESULT, reads: { ...RESULT.reads, keys: [BALANCE] } }, "0xac");
  return { compared, clears: clears(), isForwarded: checks.isForwarded(RESULT.key, RESULT.block) };
};

test("a difference compares the values that were read, and leaves the code to the nodes if all are right", async () => {
  assert.deepEqual(await report(false), { compared: [[BALANCE]], clears: 1, isForwarded: false });
  assert.deepEqual(await report(true), { compared: [[BALANCE]], clears: 1, isForwarded: true });
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
