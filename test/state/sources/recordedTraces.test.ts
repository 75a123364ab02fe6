import assert from "node:assert/strict";
import { test } from "node:test";
import { runWriteSetJob } from "../../../src/state/sources/writeSetTask.ts";
import { compareTruth } from "../../support/state/stateTruth.ts";
import {
  callTraceOf,
  encodeJson,
  type RecordedTrace,
  readRecorded,
  recordedNames,
  traceJob,
  writesOfJob,
  writesOfTrace,
} from "./recordedBlocks.ts";

/** geth leaves a new contract out of its diff if its SELFDESTRUCT was reverted (docs/reference/state.md). */
const LEFT_OUT = ["destructionOfNewUndoneGeth", "destructionOfNewUndoneGethAmsterdam"];

const compare = (recorded: RecordedTrace, trace: unknown = recorded.trace) =>
  compareTruth(writesOfTrace(recorded, trace), recorded.before, recorded.after);

for (const name of recordedNames()) {
  const recorded = readRecorded(name);
  test(`the trace of a recorded block gives no wrong value and misses none: ${name}`, () => {
    const { wrong, missed, compared } = compare(recorded);
    assert.deepEqual({ wrong, missed }, { wrong: [], missed: [] }, `${recorded.client}: ${recorded.what}`);
    assert.ok(compared >= 36);
  });
}

for (const name of LEFT_OUT) {
  test(`a new contract that geth leaves out of its diff has to be named by the call trace: ${name}`, () => {
    const recorded = readRecorded(name);
    assert.equal(runWriteSetJob(traceJob(recorded)).kind, "unlisted");
    const calls = callTraceOf(recorded) as readonly object[];
    const faulty = {
      without: [],
      more: [...calls, ...calls],
      withoutCreations: calls.map((item) => ({ ...item, result: { type: "CALL" } })),
      otherTransaction: calls.map((item) => ({ ...item, txHash: recorded.block.hash })),
    };
    for (const [what, items] of Object.entries(faulty)) {
      const output = runWriteSetJob(traceJob(recorded, { calls: encodeJson(items) }));
      assert.deepEqual(output, { kind: "failed", reason: "unlisted" }, what);
    }
    const untraced = calls.map((item) => ({ ...item, error: "execution timeout" }));
    const output = runWriteSetJob(traceJob(recorded, { calls: encodeJson(untraced) }));
    assert.deepEqual(output, { kind: "failed", reason: "incomplete" });
  });
}

test("without codes, a trace of geth has the hash of each new code, and one of anvil has nothing", () => {
  for (const name of ["newCodeGeth", "delegatedGeth"]) {
    const recorded = readRecorded(name);
    const { wrong, missed } = compare(recorded, recorded.traceWithoutCode);
    assert.deepEqual({ wrong, missed }, { wrong: [], missed: [] });
    const full = runWriteSetJob({ kind: "codeHashes", trace: encodeJson(recorded.trace) });
    const without = runWriteSetJob({ kind: "codeHashes", trace: encodeJson(recorded.traceWithoutCode) });
    assert.ok(full.kind === "codeHashes" && full.codes !== undefined && full.codes !== "missing");
    assert.deepEqual(without, full);
  }
  const recorded = readRecorded("newCodeAnvil");
  assert.equal(compare(recorded, recorded.traceWithoutCode).missed.length, 2);
  const output = runWriteSetJob({ kind: "codeHashes", trace: encodeJson(recorded.trace) });
  assert.deepEqual(output, { kind: "codeHashes", codes: "missing" });
});

test("a cleared delegation is unknown also if the trace has no codes", () => {
  const recorded = readRecorded("delegationClearedAnvil");
  const trace: unknown = JSON.parse(
    JSON.stringify(recorded.trace, (key, value) => (key === "code" ? undefined : value)),
  );
  assert.deepEqual(compare(recorded, trace).missed, []);
});

test("every block writes the storage of system contracts and the balances of fee vaults, also without transactions", () => {
  const configured = "0x00000000219ab540356cbb839cbe05303d7705fa";
  const accounts = writesOfJob(traceJob(readRecorded("emptyBlockGeth"), { contracts: [configured] }));
  const contracts = [
    "0x000f3df6d732807ef1319fb7b8bb8522d0beac02",
    "0x0000f90827f1c53a10cb7a02335b175320002935",
    "0x00000961ef480eb55e80d19ad83579a64c007002",
    "0x0000bbddc7ce488642fb579f8b00f3a590007251",
    "0x0000bff46984e3725691fa540a8c7589300d8282",
    "0x000064d678505ad48f8ccb093bc65613800e8282",
    configured,
  ] as const;
  for (const contract of contracts) {
    assert.equal(accounts.get(contract)?.otherSlots, "unknown", contract);
  }
  for (const end of ["11", "19", "1a", "1b"]) {
    assert.equal(accounts.get(`0x42000000000000000000000000000000000000${end}`)?.balance, "unknown", end);
  }
});

test("slots of system contracts are unknown even if the trace has a value", () => {
  const recorded = readRecorded("requestsGeth");
  const accounts = writesOfJob(traceJob(recorded));
  assert.match(JSON.stringify(recorded.trace), /0x00000961ef480eb55e80d19ad83579a64c007002":\{[^}]*"storage":\{"0x/);
  assert.equal(accounts.get("0x00000961ef480eb55e80d19ad83579a64c007002")?.slots.size, 0);
});

const items = (recorded: RecordedTrace): Record<string, unknown>[] => structuredClone(recorded.trace as never);

test("a trace is incomplete if an item is missing, out of order, of another transaction, or an error", () => {
  const recorded = readRecorded("clearedSlotsGeth");
  const [first = {}, second = {}, third = {}] = items(recorded);
  const { txHash, ...untold } = third;
  const faulty = {
    missing: [first, second],
    lastTwice: [first, second, third, third],
    swapped: [second, first, third],
    repeated: [first, second, second],
    error: [first, second, { txHash, error: "execution timeout" }],
    withoutHash: [first, second, untold],
    otherHash: [first, second, { ...third, txHash: first.txHash }],
  };
  for (const [name, trace] of Object.entries(faulty)) {
    const output = runWriteSetJob(traceJob({ ...recorded, trace }));
    assert.deepEqual(output, { kind: "failed", reason: "incomplete" }, name);
  }
});

test("a trace is incomplete if it does not raise the nonce of a sender", () => {
  const recorded = readRecorded("clearedSlotsGeth");
  const { transactions } = recorded.block as unknown as { transactions: readonly { from: string }[] };
  const sender = transactions[0]?.from ?? "";
  for (const nonce of [undefined, 0]) {
    const trace = items(recorded);
    const [{ result } = {}] = trace;
    const { post } = result as { post: Record<string, object> };
    post[sender] = { ...post[sender], nonce };
    assert.deepEqual(runWriteSetJob(traceJob({ ...recorded, trace })), { kind: "failed", reason: "incomplete" });
  }
});

test("a trace without diff mode is unsupported, and one that is no trace does not match", () => {
  const recorded = readRecorded("clearedSlotsGeth");
  const trace = items(recorded).map(({ txHash, result }) => ({ txHash, result: (result as { pre: object }).pre }));
  assert.deepEqual(runWriteSetJob(traceJob({ ...recorded, trace })), { kind: "failed", reason: "unsupported" });
  for (const other of [null, {}, ["0x"], "0x"]) {
    assert.deepEqual(runWriteSetJob(traceJob({ ...recorded, trace: other })), { kind: "failed", reason: "mismatch" });
  }
  const cut = traceJob(recorded, { trace: encodeJson(recorded.trace).subarray(0, -1) });
  assert.deepEqual(runWriteSetJob(cut), { kind: "failed", reason: "mismatch" });
});

test("the transactions and withdrawals are those of the block's hash", () => {
  const recorded = readRecorded("withdrawalsGeth");
  const { block } = recorded;
  const { transactions } = block as unknown as { transactions: readonly object[] };
  const other = readRecorded("clearedSlotsGeth").block;
  const faulty = {
    anotherBlock: other,
    withoutTransactions: { ...block, transactions: [] },
    changedSender: { ...block, transactions: transactions.map((each) => ({ ...each, nonce: "0x0" })) },
    withoutWithdrawals: { ...block, withdrawals: undefined },
    notThere: null,
  };
  for (const [name, body] of Object.entries(faulty)) {
    const output = runWriteSetJob(traceJob(recorded, { body: encodeJson(body) }));
    assert.deepEqual(output, { kind: "failed", reason: "mismatch" }, name);
  }
});
