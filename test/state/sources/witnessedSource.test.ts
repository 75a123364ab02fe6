import assert from "node:assert/strict";
import { test } from "node:test";
import type { BlockId } from "../../../src/core/heads.ts";
import { NodeError } from "../../../src/core/node.ts";
import type { Hash } from "../../../src/ethereum/hex.ts";
import type { SourceNode } from "../../../src/state/sources/sourceNodes.ts";
import { WitnessedSource, type WitnessedSourceOptions } from "../../../src/state/sources/witnessedSource.ts";
import { runWriteSetJob } from "../../../src/state/sources/writeSetTask.ts";
import { packWrites, unpackWrites } from "../../../src/state/store/packedWrites.ts";
import type { BlockWrites, WriteSet, WriteSetFailure, WriteSetSource } from "../../../src/state/writeSet.ts";
import {
  addressAt,
  createWitnessCase,
  fullClaim,
  NO_WORLD_ACCOUNT,
  wrongAfter,
} from "../../support/state/witnessCase.ts";
import { createCost } from "../costRig.ts";

const [PAYER, SYSTEM] = [addressAt(1), addressAt(2)];
const account = (balance: bigint) => ({ ...NO_WORLD_ACCOUNT, balance });
const CASE = await createWitnessCase(
  new Map([PAYER, SYSTEM].map((address) => [address, account(5n)] as const)),
  new Map([
    [PAYER, account(4n)],
    [SYSTEM, account(6n)],
  ]),
);
const BLOCK: BlockId = { number: 8n, hash: CASE.header.hash as Hash };
const CLAIM = fullClaim(CASE);
const OPEN: BlockWrites = new Map([...CLAIM, [SYSTEM, { balance: "unknown", slots: new Map() }]]);
const { signal } = new AbortController();

interface RigOptions extends Partial<WitnessedSourceOptions> {
  readonly claim?: BlockWrites | WriteSetFailure;
  readonly answer?: (method: string, params: readonly unknown[]) => unknown;
}

const createRig = ({ claim = OPEN, answer, ...options }: RigOptions = {}) => {
  const asked: string[] = [];
  const results: string[] = [];
  const clock = { nowMs: 0 };
  const { cost, spent } = createCost();
  const node: SourceNode = {
    name: "one",
    send: async ({ method, params }) => {
      asked.push(method);
      const honest =
        method === "eth_getProof" ? await CASE.afterProofs.proofOf(params[0] as Hash, []) : { state: CASE.nodes };
      return Buffer.from(JSON.stringify(answer?.(method, params) ?? honest));
    },
  };
  const source: WriteSetSource = {
    kind: "trace",
    unitsPerBlock: 60,
    read: async () =>
      typeof claim === "string" ? claim : { block: BLOCK, node: "one", grade: "stated", packed: packWrites(claim) },
  };
  const witnessed = new WitnessedSource(source, {
    nodesFor: () => [node],
    blockTimeMs: () => 20_000,
    thread: { run: async (job) => runWriteSetJob(job) },
    cost: { unitsOf: cost.unitsOf, shouldFollow: () => true, spend: (purpose, units) => cost.spend(purpose, units) },
    nowMs: () => clock.nowMs,
    isAllowed: () => true,
    isAlways: false,
    headerOf: ({ number, hash }) =>
      [CASE.header, CASE.parent].find((each) => each.hash === hash && BigInt(each.number as string) === number),
    onResult: (_, result) => results.push(result),
    ...options,
  });
  const read = () => witnessed.read(BLOCK, signal);
  return { read, asked, results, clock, spent };
};

const writesOf = (outcome: WriteSet | WriteSetFailure): BlockWrites => {
  assert.ok(typeof outcome !== "string", String(outcome));
  return unpackWrites(outcome.packed);
};

test("a write set is proven with one proof for each account that is open, and is on no node's word", async () => {
  const { read, asked, results, spent } = createRig();
  const outcome = await read();
  assert.deepEqual(wrongAfter(CASE, writesOf(outcome)), []);
  assert.ok(typeof outcome !== "string" && outcome.grade === "proven" && outcome.node === undefined);
  assert.deepEqual(asked, ["debug_executionWitness", "eth_getProof"]);
  assert.deepEqual(results, ["proven"]);
  assert.deepEqual(spent, [
    ["writeSets", 20],
    ["writeSets", 20],
  ]);
});

test("proofs are asked by the hash of the block: at its number, the node may have another block", async () => {
  const blocks: unknown[] = [];
  const { read } = createRig({
    answer: (method, params) => (method === "eth_getProof" ? void blocks.push(params[2]) : undefined),
  });
  await read();
  assert.deepEqual(blocks, [{ blockHash: BLOCK.hash }]);
});

test("a false write set stays what it was, and after three in a row no witness is asked for ten minutes", async () => {
  const { read, asked, results, clock } = createRig({ claim: new Map([...CLAIM].slice(1)) });
  for (let count = 0; count < 5; count++) {
    const outcome = await read();
    assert.ok(typeof outcome !== "string" && outcome.grade === "stated" && outcome.node === "one");
  }
  assert.deepEqual([results, asked.length], [["refused", "refused", "refused"], 3]);
  clock.nowMs = 600_000;
  await read();
  assert.equal(asked.length, 4);
});

const unsupported = (): never => {
  throw new NodeError("unsupportedMethod", "one", "the method does not exist");
};

test("a node without the method is asked once, and a witness that fails leaves the write set as it was", async () => {
  const { read, asked, results } = createRig({ answer: unsupported });
  await read();
  await read();
  assert.deepEqual([asked, results], [["debug_executionWitness"], ["unsupported"]]);
  const failing = createRig({ answer: (method) => (method === "eth_getProof" ? unsupported() : undefined) });
  assert.equal(((await failing.read()) as WriteSet).node, "one");
  assert.deepEqual(failing.results, ["unsupported"]);
});

test("no witness is asked if it does not pay, is not allowed, or a header is not known", async () => {
  const { cost } = createCost();
  const spend = () => undefined;
  const unpaid = { unitsOf: cost.unitsOf, shouldFollow: () => false, spend };
  const rigs = [
    createRig({ cost: unpaid }),
    createRig({ isAllowed: () => false }),
    createRig({ headerOf: ({ number }) => (number === 8n ? CASE.header : undefined) }),
    createRig({ headerOf: () => undefined }),
  ];
  for (const { read, asked } of rigs) {
    assert.equal(((await read()) as WriteSet).grade, "stated");
    assert.deepEqual(asked, []);
  }
  const always = createRig({ cost: unpaid, isAlways: true });
  assert.equal(((await always.read()) as WriteSet).grade, "proven");
});

test("without a write set there is nothing to prove", async () => {
  const { read, results } = createRig({ claim: "incomplete" });
  assert.equal(await read(), "incomplete");
  assert.deepEqual(results, []);
});
