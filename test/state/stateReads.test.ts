import assert from "node:assert/strict";
import { test } from "node:test";
import type { BlockId } from "../../src/core/heads.ts";
import type { RpcResponse } from "../../src/core/rpcSource.ts";
import type { Address, Hash } from "../../src/ethereum/hex.ts";
import { keccak256Hex } from "../../src/ethereum/keccak.ts";
import type { CountedRead } from "../../src/state/cost.ts";
import type { ProvenValues } from "../../src/state/fetch/proofReader.ts";
import { StateFollower } from "../../src/state/stateFollower.ts";
import type { StateField, StateKey } from "../../src/state/stateKey.ts";
import { type StateMethod, StateReads } from "../../src/state/stateReads.ts";
import { packWrites } from "../../src/state/store/packedWrites.ts";
import { ValueStore } from "../../src/state/store/valueStore.ts";
import type { AccountWrites } from "../../src/state/writeSet.ts";
import { WriteSetWaits } from "../../src/state/writeSetWaits.ts";
import { createTelemetry } from "../../src/telemetry/telemetry.ts";
import { hashOf } from "../support/builders/heads.ts";
import { createContext } from "../support/builders/request.ts";
import { addressOf } from "../support/builders/stateModel.ts";
import { createFakeHeads } from "../support/fakes/fakeHeads.ts";
import { createGuard } from "./costRig.ts";
import { emptyWriteSet, FakeWriteSets } from "./fakeWriteSets.ts";

const FIRST = 1_000n;
const ACCOUNT = addressOf(0);
const SLOT: Hash = `0x${"0".repeat(63)}1`;
const LONG_MS = 60_000;

const block = (number: bigint, fork = 0): BlockId => ({ number, hash: hashOf(number, fork) });
const balanceOf = (address: Address): StateKey => ({ field: "balance", address, slot: undefined });

interface RigOptions {
  readonly waitMs?: number;
  readonly blockTimeMs?: number;
  /** What a proof shows of each account. Default: no value is read by proof. */
  readonly proven?: ProvenValues["values"];
}

const createRig = ({ waitMs = LONG_MS, blockTimeMs = 10 * LONG_MS, proven }: RigOptions = {}) => {
  const heads = createFakeHeads(FIRST);
  heads.move(block(FIRST));
  const source = new FakeWriteSets();
  const values = new ValueStore(1_000_000);
  const counted: CountedRead[] = [];
  const waits: string[] = [];
  const lookups: string[] = [];
  const telemetry = createTelemetry({ level: "silent" });
  const { stateWaits, stateLookups } = telemetry.metrics;
  Object.assign(stateWaits, { inc: ({ result }: { readonly result: string }) => waits.push(result) });
  Object.assign(stateLookups, {
    series: ({ method, outcome }: Readonly<Record<string, string>>) => ({
      inc: () => lookups.push(`${method} ${outcome}`),
    }),
  });
  const cost = {
    shouldFollow: () => true,
    shouldCatchUp: () => false,
    onRead: (read: CountedRead) => counted.push(read),
  };
  const follower = new StateFollower({
    ...{ heads, chain: "chain", telemetry },
    sources: [source],
    cost,
    values,
    guard: createGuard(),
    hasSameRules: () => true,
    onRead: () => undefined,
    onDifference: () => undefined,
    onApplied: () => undefined,
    onDropped: () => undefined,
  });
  const reads = new StateReads({
    values,
    follower,
    cost,
    waits: new WriteSetWaits({ waitMs, blockTimeMs: () => blockTimeMs, chain: "chain", telemetry }),
    audit: { onLocalRead: () => undefined },
    proofs: proven && {
      isWanted: () => true,
      read: async (_keys, at) => [
        { values: proven, response: { body: Buffer.from("{}"), status: {}, verified: true, block: at } },
      ],
    },
    ...{ chain: "chain", telemetry },
  });
  const asked: BlockId[] = [];
  /** Reads a value. The node answers with `text`, asked by hash. */
  const read = (
    key: StateKey,
    at: BlockId,
    text: string,
    response: Partial<RpcResponse> = {},
    bypassCache = false,
    method: StateMethod = "eth_getBalance",
  ) =>
    reads.request({ method, key, block: at, context: createContext({ heads: heads.current(), bypassCache }) }, () => {
      asked.push(at);
      return { body: Buffer.from(JSON.stringify(text)), status: {}, verified: true, block: at, ...response };
    });
  const write = (at: BlockId, address: Address, writes: AccountWrites) =>
    source.answer(at, { block: at, grade: "checked", packed: packWrites(new Map([[address, writes]])) });
  return { heads, source, values, reads, follower, read, write, asked, counted, waits, lookups };
};

const textOf = (response: RpcResponse | Promise<RpcResponse>): string => {
  assert.ok(!(response instanceof Promise), "a hit needs no promise");
  assert.ok(response.body instanceof Uint8Array);
  return JSON.parse(Buffer.from(response.body).toString());
};

const CASES: readonly [StateMethod, StateField, node: string, canonical: string][] = [
  ["eth_getBalance", "balance", "0x0", "0x0"],
  ["eth_getBalance", "balance", "0xde0b6b3a7640000", "0xde0b6b3a7640000"],
  ["eth_getBalance", "balance", "0x00FF", "0xff"],
  ["eth_getTransactionCount", "nonce", "0x1", "0x1"],
  ["eth_getStorageAt", "slot", `0x${"0".repeat(64)}`, `0x${"0".repeat(64)}`],
  ["eth_getStorageAt", "slot", "0x7", `0x${"0".repeat(63)}7`],
  ["eth_getCode", "code", "0x", "0x"],
  ["eth_getCode", "code", "0x60016002", "0x60016002"],
];

for (const [method, field, node, canonical] of CASES) {
  test(`${method} of ${node.slice(0, 20)} is known after the node returned it, in canonical form`, () => {
    const { read, asked, lookups } = createRig();
    const key: StateKey = { field, address: ACCOUNT, slot: field === "slot" ? SLOT : undefined };
    read(key, block(FIRST), node, {}, false, method);
    const response = read(key, block(FIRST), "0xdead", {}, false, method);
    assert.equal(textOf(response), canonical);
    assert.deepEqual((response as RpcResponse).status, { hit: "state" });
    assert.equal(asked.length, 1);
    assert.deepEqual(lookups, [`${method} miss`, `${method} hit`]);
  });
}

test("responses that are cached, shared, unverified or malformed do not enter", () => {
  const { read, asked } = createRig();
  const key = balanceOf(ACCOUNT);
  const others: readonly Partial<RpcResponse>[] = [
    { status: { hit: "memory" } },
    { status: { collapsed: true } },
    { verified: false },
    { body: Buffer.from("null") },
    { body: Buffer.from('{"balance":"0x1"}') },
    { block: block(FIRST, 1) },
  ];
  for (const response of others) {
    read(key, block(FIRST), "0x1", response);
  }
  assert.equal(asked.length, others.length);
});

test("no-cache, an excluded account and a block below the newest 256 ask the node", () => {
  const { heads, read, asked, counted } = createRig();
  const key = balanceOf(ACCOUNT);
  read(key, block(FIRST), "0x1");
  read(key, block(FIRST), "0x1", {}, true);
  assert.equal(asked.length, 2);
  heads.move(block(FIRST + 256n));
  read(key, block(FIRST), "0x1");
  assert.equal(asked.length, 3);
  assert.equal(counted.length, 1);
});

test("a read at a new head waits for its write set, and returns the value that the block wrote", async () => {
  const { heads, read, write, asked, waits } = createRig();
  const [at, next] = [block(FIRST), block(FIRST + 1n)];
  read(balanceOf(ACCOUNT), at, "0x1");
  heads.move(next);
  const waiting = read(balanceOf(ACCOUNT), next, "0xdead");
  assert.ok(waiting instanceof Promise);
  write(next, ACCOUNT, { balance: 2n, slots: new Map() });
  assert.equal(textOf(await waiting), "0x2");
  assert.equal(textOf(read(balanceOf(ACCOUNT), at, "0xdead")), "0x1");
  assert.equal(asked.length, 1);
  assert.deepEqual(waits, ["hit"]);
});

test("a read that waited asks the node if the block wrote an unknown value", async () => {
  const { heads, read, write, waits } = createRig();
  const [at, next] = [block(FIRST), block(FIRST + 1n)];
  read(balanceOf(ACCOUNT), at, "0x1");
  heads.move(next);
  const waiting = read(balanceOf(ACCOUNT), next, "0x3");
  write(next, ACCOUNT, { balance: "unknown", slots: new Map() });
  assert.equal(textOf(await waiting), "0x3");
  assert.equal(textOf(read(balanceOf(ACCOUNT), next, "0xdead")), "0x3");
  assert.deepEqual(waits, ["unknown"]);
});

for (const [what, options] of [
  ["state.waitMs", { waitMs: 5 }],
  ["half a block time", { blockTimeMs: 10 }],
] as const) {
  test(`a read waits for a write set up to ${what}, and never returns an older value`, async () => {
    const { heads, source, read, waits, follower } = createRig(options);
    const [at, next] = [block(FIRST), block(FIRST + 1n)];
    read(balanceOf(ACCOUNT), at, "0x1");
    heads.move(next);
    assert.equal(textOf(await read(balanceOf(ACCOUNT), next, "0x1")), "0x1");
    assert.deepEqual(waits, ["late"]);
    // The response came before the write set. It is known once that is applied.
    source.answer(next, emptyWriteSet(next));
    await follower.untilApplied(next);
    assert.equal(textOf(read(balanceOf(ACCOUNT), next, "0xdead")), "0x1");
  });
}

test("a read of a value that is not known does not wait", () => {
  const { heads, read, asked, waits } = createRig();
  heads.move(block(FIRST + 1n));
  assert.equal(textOf(read(balanceOf(ACCOUNT), block(FIRST + 1n), "0x1")), "0x1");
  assert.equal(asked.length, 1);
  assert.deepEqual(waits, []);
});

test("a response that began before all values were dropped does not enter", async () => {
  const { reads, follower, heads, read, asked } = createRig();
  const answer = Promise.withResolvers<RpcResponse>();
  const context = createContext({ heads: heads.current() });
  const key = balanceOf(ACCOUNT);
  const pending = reads.request({ method: "eth_getBalance", key, block: block(FIRST), context }, () => answer.promise);
  follower.forget();
  answer.resolve({ body: Buffer.from('"0x1"'), status: {}, verified: true, block: block(FIRST) });
  await pending;
  assert.equal(textOf(read(key, block(FIRST), "0x2")), "0x2");
  assert.equal(asked.length, 1);
});

const CODE = "0x60016002";
const CODE_KEY: StateKey = { field: "code", address: ACCOUNT, slot: undefined };
const PROVEN_CODE: RigOptions = {
  proven: [[CODE_KEY, keccak256Hex(Buffer.from(CODE.slice(2), "hex")).slice(2)]],
};

test("a code that a node returned is proven by its hash in the account's proof", async () => {
  const { read, asked } = createRig(PROVEN_CODE);
  const first = await read(CODE_KEY, block(FIRST), CODE, {}, false, "eth_getCode");
  assert.equal(textOf(first), CODE);
  assert.equal(first.grade, "proven");
  const second = await read(CODE_KEY, block(FIRST), "0xdead", {}, false, "eth_getCode");
  assert.equal(textOf(second), CODE);
  assert.equal(second.grade, "proven");
  assert.equal(asked.length, 1);
});

test("a code with another hash than in the account's proof is not proven, and does not become known", async () => {
  const { read, asked } = createRig(PROVEN_CODE);
  const wrong = await read(CODE_KEY, block(FIRST), "0x6001", {}, false, "eth_getCode");
  assert.equal(wrong.grade, undefined);
  const right = await read(CODE_KEY, block(FIRST), CODE, {}, false, "eth_getCode");
  assert.equal(textOf(right), CODE);
  assert.equal(asked.length, 2);
});
