import assert from "node:assert/strict";
import { test } from "node:test";
import { NodeError } from "../../../src/core/node.ts";
import type { Address, Hash } from "../../../src/ethereum/hex.ts";
import { AnswerDifferences } from "../../../src/state/answers/answerDifferences.ts";
import { AnswerSamples, type LocalAnswer } from "../../../src/state/answers/answerSamples.ts";
import { ForwardedContracts } from "../../../src/state/answers/forwardedContracts.ts";
import { defaultsCalls, parseDefaults } from "../../../src/state/answers/nodeDefaults.ts";
import type { StateDifference } from "../../../src/state/stateDifference.ts";
import { createTelemetry } from "../../../src/telemetry/telemetry.ts";
import { createCost } from "../costRig.ts";

const CONTRACT: Address = `0x${"c0".repeat(20)}`;
const HASH: Hash = `0x${"7".repeat(64)}`;
const CODE = "5".repeat(64);
const ANSWER: LocalAnswer = {
  key: JSON.stringify(["eth_call", [{ to: CONTRACT }, null]]),
  method: "eth_call",
  block: { number: 7n, hash: HASH },
  body: Buffer.from('"0xab"'),
  reads: { keys: [], emptiness: [], addresses: new Set(), blockOpcodes: new Set() },
};

/** Returns the differences that one sample finds. */
const sample = async (outcome: unknown): Promise<readonly unknown[]> => {
  const found: unknown[] = [];
  const calls: unknown[] = [];
  const { promise, resolve } = Promise.withResolvers<void>();
  const samples = new AnswerSamples({
    fetch: async (sent) => {
      calls.push(...sent.map(({ params }) => params));
      setImmediate(resolve);
      return [outcome];
    },
    cost: createCost({ nowMs: () => 0, random: () => 0 }).cost,
    onCompared: () => undefined,
    onDifference: (_answer, actual) => found.push(actual),
    onDoubted: () => assert.fail("the answer does not depend on a BLOCKHASH"),
  });
  samples.consider(ANSWER);
  samples.consider(ANSWER);
  await promise;
  assert.deepEqual(calls, [[{ to: CONTRACT }, { blockHash: HASH }]], "one call a second, at the answer's block");
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
    const found: unknown[] = [];
    const doubted: string[] = [];
    const outcomes = ["0x00", second];
    const { promise: asked, resolve } = Promise.withResolvers<void>();
    const samples = new AnswerSamples({
      fetch: async () => {
        if (outcomes.length === 1) {
          setImmediate(resolve);
        }
        return [outcomes.shift()];
      },
      cost: createCost({ nowMs: () => 0, random: () => 0 }).cost,
      onCompared: () => undefined,
      onDifference: (_answer, actual) => found.push(actual),
      onDoubted: ({ key }) => doubted.push(key),
    });
    samples.consider({ ...ANSWER, reads: { ...ANSWER.reads, blockOpcodes: new Set(["BLOCKHASH"]) } });
    await asked;
    assert.deepEqual([found, doubted], [differences, [ANSWER.key]]);
  });
}

const report = async (wrong: StateDifference | undefined) => {
  const values = { get: () => CODE };
  const forwarded = new ForwardedContracts(values);
  const dropped: StateDifference[] = [];
  let clears = 0;
  const differences = new AnswerDifferences({
    chain: "chain",
    table: { clear: () => clears++ },
    forwarded,
    follower: { generation: 0 },
    telemetry: createTelemetry({ level: "silent" }),
    findWrongValue: async () => wrong,
    onWrongValue: (difference) => dropped.push(difference),
  });
  await differences.report(ANSWER, "0xac");
  return { dropped, clears, isForwarded: forwarded.has(ANSWER.key, ANSWER.block) };
};

test("a difference with a wrong value drops all values", async () => {
  const key = { field: "balance", address: CONTRACT, slot: undefined } as const;
  const wrong = { key, block: ANSWER.block, known: "1", actual: "2" };
  assert.deepEqual(await report(wrong), { dropped: [wrong], clears: 1, isForwarded: false });
});

test("a difference with right values leaves the code to the nodes", async () => {
  assert.deepEqual(await report(undefined), { dropped: [], clears: 1, isForwarded: true });
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
  const [first, second] = defaultsCalls(ANSWER.block);
  assert.notDeepEqual(first?.params, second?.params);
  const older = resultOf(wordsOf(0n, 7n, 0n).slice(0, -1));
  assert.equal(parseDefaults([new Error("invalid opcode"), older], HEADER)?.gas, 50_000_000n);
  assert.equal(parseDefaults(["0x", "0x"], HEADER), undefined);
});
