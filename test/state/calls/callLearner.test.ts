import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import type { BlockId, HeaderFields } from "../../../src/core/heads.ts";
import type { ReadSet } from "../../../src/core/readSet.ts";
import { type Address, type Data, formatWord, type Hash } from "../../../src/ethereum/hex.ts";
import { CallLearner, type CallLearnerOptions, type LearnCandidate } from "../../../src/state/calls/callLearner.ts";
import type { CallResult } from "../../../src/state/calls/callResult.ts";
import type { BlockCall, CallRun } from "../../../src/state/calls/callRun.ts";
import { CallRunner, type CallRunnerOptions } from "../../../src/state/calls/callRunner.ts";
import type { Refusal } from "../../../src/state/calls/callTable.ts";
import type { NodeDefaults } from "../../../src/state/calls/nodeDefaults.ts";
import type { StateKey } from "../../../src/state/stateKey.ts";
import { ValueStore } from "../../../src/state/store/valueStore.ts";
import { knownStateOf } from "../../support/builders/nodeState.ts";
import { until } from "../../support/clients/until.ts";
import { createCost } from "../costRig.ts";

const CONTRACT: Address = `0x${"c0".repeat(20)}`;
const SLOT: Hash = `0x${"0".repeat(64)}`;
const BLOCK: BlockId = { number: 7n, hash: `0x${"7".repeat(64)}` };
const RESULT: Data = "0x05";
const NO_CODE = "0".repeat(64);
const SLOT_KEY: StateKey = { field: "slot", address: CONTRACT, slot: SLOT };
const CODE_KEY: StateKey = { field: "code", address: CONTRACT, slot: undefined };
const READS: ReadSet = {
  accounts: [{ address: CONTRACT, fields: ["code"], slots: [SLOT] }],
  blockHashes: [],
  environment: [],
};
const DEFAULTS: NodeDefaults = { gas: 50_000_000n, hasZeroSender: true, fromHeader: new Set() };

const defaultsOf = (defaults: NodeDefaults | undefined) => ({ get: async () => defaults, known: () => defaults });

const candidateOf = (fields: Partial<LearnCandidate> = {}): LearnCandidate => ({
  key: JSON.stringify(["eth_call", [{ to: CONTRACT }, null]]),
  method: "eth_call",
  body: Buffer.from(JSON.stringify(RESULT)),
  block: BLOCK,
  node: "node",
  generation: 0,
  clientId: "client",
  needs: "stated",
  expected: undefined,
  ...fields,
});

/** A run that reads a contract's code and a slot of it, and returns RESULT. */
const runContract = async ({ source }: CallRun) => {
  const { signal } = new AbortController();
  await source.read({ accounts: [CONTRACT], slots: [], blockHashes: [] }, signal);
  await source.read({ accounts: [], slots: [[CONTRACT, SLOT]], blockHashes: [] }, signal);
  return { result: RESULT, holdsWithLessGas: true, reads: READS };
};

/** Costs with this number of units to learn. */
const costOf = (units: number): CallLearnerOptions["cost"] => createCost({ unitsPerMinute: units }).cost;

type RigOptions = Partial<CallLearnerOptions & CallRunnerOptions>;

interface ProvenCase {
  /** The key whose value has no proof. */
  readonly stated?: StateKey;
  readonly options?: RigOptions;
  readonly reads?: ReadSet;
  readonly key?: string;
  readonly method?: LearnCandidate["method"];
}

/** A learner on values that can be loaded, and its results. */
const createRig = ({ mayProve = false, ...options }: RigOptions & { readonly mayProve?: boolean } = {}) => {
  const values = new ValueStore(1_000_000);
  values.begin(BLOCK);
  const loads: (readonly StateKey[])[] = [];
  const learned: CallResult[] = [];
  const refusals: Refusal[] = [];
  const doubted: string[] = [];
  const shared = {
    values,
    follower: { generation: 0, untilApplied: () => undefined },
    loader: {
      unitsFor: (keys: readonly StateKey[]) => keys.length,
      load: async (keys: readonly StateKey[], block: BlockId) => {
        loads.push(keys);
        for (const key of keys) {
          values.add(key, block, NO_CODE);
        }
      },
      mayProve: () => mayProve,
    },
    blockTimeMs: () => 2_000,
    cost: costOf(1_000_000),
    run: runContract,
    checks: { isForwarded: () => false },
    headerOf: (): HeaderFields => ({ miner: CONTRACT, gasLimit: "0x5" }),
    isCertain: () => true,
    stateAt: knownStateOf(values),
    defaults: defaultsOf(DEFAULTS),
    table: {
      store: (_: unknown, answer: CallResult) => learned.push(answer),
      refuse: (_: BlockCall, refusal: Refusal) => refusals.push(refusal),
    },
    forget: ({ key }: BlockCall) => doubted.push(key),
    ...options,
  };
  const learner = new CallLearner({ ...shared, runner: new CallRunner(shared) });
  const settled = (count = 1) => until(() => learned.length + refusals.length >= count, "all answers are settled");
  return { learner, values, loads, learned, refusals, doubted, settled };
};

test("calls that come soon after others are learned together if their values are proven, and share the reads", async () => {
  const other = candidateOf({ key: JSON.stringify(["eth_call", [{ to: CONTRACT, gas: "0x1" }, null]]) });
  const later = candidateOf({ key: JSON.stringify(["eth_call", [{ to: CONTRACT, gas: "0x22" }, null]]) });
  for (const mayProve of [false, true]) {
    const run: CallRunnerOptions["run"] = async ({ source, paramsText }) => {
      const slot: Hash = formatWord(BigInt(paramsText.length));
      const { signal } = new AbortController();
      await source.read({ accounts: [], slots: [[CONTRACT, slot]], blockHashes: [] }, signal);
      return { result: RESULT, holdsWithLessGas: true, reads: READS };
    };
    const rig = createRig({ mayProve, run });
    rig.learner.add(candidateOf());
    await rig.settled();
    rig.learner.add(other);
    await turn();
    rig.learner.add(later);
    await rig.settled(3);
    assert.equal(rig.loads.length, mayProve ? 2 : 3);
    assert.equal(rig.learned.length, 3);
  }
});

test("an answer is learned with its reads, and its values are loaded round by round", async () => {
  const rig = createRig();
  rig.learner.add(candidateOf());
  await rig.settled();
  assert.deepEqual(rig.loads.flat(), [CODE_KEY, SLOT_KEY]);
  assert.deepEqual(rig.learned[0]?.reads.keys, [CODE_KEY, SLOT_KEY]);
  assert.deepEqual(rig.learned[0]?.block, BLOCK);
});

for (const [name, isProven, changed] of [
  ["all values that it read are proven", true, {}],
  ["a value is only stated by a node", false, { stated: SLOT_KEY }],
  ["the hash of the header was not computed", false, { options: { isCertain: () => false } }],
  ["it has a price", false, { key: JSON.stringify(["eth_call", [{ to: CONTRACT, gasPrice: "0x1" }, null]]) }],
  ["it is an estimate", false, { method: "eth_estimateGas" }],
  ["it read the hash of an earlier block", false, { reads: { ...READS, blockHashes: [3n] } }],
  ["it read a fee", false, { reads: { ...READS, environment: ["BASEFEE"] } }],
  ["it read the time", true, { reads: { ...READS, environment: ["TIMESTAMP"] } }],
  [
    "it read whether an account has slots",
    false,
    { reads: { ...READS, accounts: [{ address: CONTRACT, fields: ["code", "nonce", "storage"], slots: [] }] } },
  ],
] as const satisfies readonly (readonly [string, boolean, ProvenCase])[]) {
  test(`an answer is ${isProven ? "" : "not "}proven: ${name}`, async () => {
    const { stated, options, reads = READS, ...candidate }: ProvenCase = changed;
    const run = async (request: CallRun) => ({ ...(await runContract(request)), reads });
    const rig = createRig({
      run,
      loader: {
        mayProve: () => false,
        unitsFor: (keys) => keys.length,
        load: async (keys, block) => {
          for (const key of keys) {
            rig.values.add(key, block, NO_CODE);
            if (key.field !== stated?.field) {
              rig.values.add(key, block, NO_CODE, "proven");
            }
          }
        },
      },
      ...options,
    });
    rig.learner.add(candidateOf(candidate));
    await rig.settled();
    assert.equal(rig.learned[0]?.grade, isProven ? "proven" : stated === undefined ? "checked" : "stated");
  });
}

test("answers of one block share each load", async () => {
  const rig = createRig();
  for (let index = 0; index < 20; index++) {
    rig.learner.add(candidateOf({ key: JSON.stringify(["eth_call", [{ to: CONTRACT, data: `0x${index}` }, null]]) }));
  }
  await rig.settled(20);
  assert.equal(rig.learned.length, 20);
  // The first one may run before the others are added.
  assert.ok(rig.loads.filter((keys) => keys.length > 0).length <= 4, `${rig.loads.length} loads`);
});

test("bytes that differ from those of an execution with BLOCKHASH are doubted, and no others", async () => {
  const other = async (run: CallRun) => ({ ...(await runContract(run)), result: "0x06" as const });
  const withHash = async (run: CallRun) => ({ ...(await other(run)), reads: { ...READS, blockHashes: [6n] } });
  const equal = async (run: CallRun) => ({ ...(await withHash(run)), result: RESULT });
  for (const [run, doubted] of [
    [other, []],
    [withHash, [candidateOf().key]],
    [equal, []],
  ] as const) {
    const rig = createRig({ run });
    rig.learner.add(candidateOf());
    await rig.settled();
    assert.deepEqual(rig.doubted, doubted);
  }
});

test("an answer is refused with the reason, and the wait for it ends", async () => {
  const other = async (run: CallRun) => ({ ...(await runContract(run)), result: "0x06" as const });
  const limited = async (run: CallRun) => ({ ...(await runContract(run)), holdsWithLessGas: false });
  const failing = async () => {
    throw new Error("execution reverted");
  };
  for (const [options, expected] of [
    [{ run: other }, "mismatch"],
    [{ run: limited }, "gas"],
    [{ run: failing }, "failed"],
    [{ checks: { isForwarded: () => true } }, "forwarded"],
    [{ defaults: defaultsOf(undefined) }, "defaults"],
    [{ defaults: defaultsOf({ ...DEFAULTS, hasZeroSender: false }) }, "defaults"],
    [{ cost: costOf(0) }, "budget"],
    [{ loader: { mayProve: () => false, unitsFor: () => 0, load: async () => undefined } }, "unknown"],
    [{ follower: { generation: 1, untilApplied: () => undefined } }, "late"],
    [{ headerOf: () => undefined }, "late"],
  ] as const) {
    const rig = createRig(options);
    await rig.learner.add(candidateOf());
    assert.deepEqual([rig.refusals, rig.learned], [[expected], []], expected);
  }
});

test("an answer of a block that cannot be read is refused before anything is loaded", async () => {
  const rig = createRig();
  rig.learner.add(candidateOf({ block: { number: 8n, hash: `0x${"8".repeat(64)}` } }));
  await rig.settled();
  assert.deepEqual([rig.refusals, rig.loads], [["late"], []]);
});

test("a client cannot fill the queue", async () => {
  const { promise, resolve } = Promise.withResolvers<NodeDefaults>();
  const rig = createRig({ defaults: { get: () => promise, known: () => undefined } });
  for (let index = 0; index < 400; index++) {
    rig.learner.add(candidateOf({ key: JSON.stringify(["eth_call", [{ to: CONTRACT, data: index }, null]]) }));
  }
  rig.learner.add(
    candidateOf({ key: JSON.stringify(["eth_call", [{ to: CONTRACT, data: "other" }, null]]), clientId: "two" }),
  );
  resolve(DEFAULTS);
  await rig.settled(257);
  assert.equal(rig.learned.length, 257);
});

test("a balance that is not known is loaded only if the run read it", async () => {
  let runs = 0;
  const reads: ReadSet = { ...READS, accounts: [{ address: CONTRACT, fields: ["code", "balance"], slots: [] }] };
  const rig = createRig({
    run: async ({ source }) => {
      runs++;
      await source.read({ accounts: [CONTRACT], slots: [], blockHashes: [] }, new AbortController().signal);
      return { result: RESULT, holdsWithLessGas: true, reads };
    },
  });
  rig.learner.add(candidateOf());
  await rig.settled();
  assert.deepEqual(
    rig.loads.flat().map(({ field }) => field),
    ["code", "balance"],
  );
  assert.equal(rig.learned.length, 1);
  assert.equal(runs, 3);
});

test("a call that is added again while it is learned is learned once, and both wait for its end", async () => {
  const rig = createRig();
  const first = rig.learner.add(candidateOf());
  const second = rig.learner.add(candidateOf({ clientId: "other" }));
  assert.ok(first !== undefined && second === first);
  await first;
  assert.equal(rig.learned.length, 1);
  await rig.learner.add(candidateOf());
  assert.equal(rig.learned.length, 2);
});

test("a client that requires a proof does not get the end of a run without proofs", async () => {
  const rig = createRig();
  for (const key of [CODE_KEY, SLOT_KEY]) {
    rig.values.add(key, BLOCK, NO_CODE);
  }
  rig.learner.add(candidateOf());
  const required = [
    rig.learner.add(candidateOf({ needs: "proven" })),
    rig.learner.add(candidateOf({ needs: "proven" })),
  ];
  await Promise.all(required);
  assert.deepEqual([rig.learned.length, rig.loads], [2, [[CODE_KEY, SLOT_KEY]]]);
});

for (const isPossible of [true, false]) {
  test(`values that only a node has stated are ${isPossible ? "proven" : "asked for once"} for a client that requires a proof`, async () => {
    const loads: (readonly StateKey[])[] = [];
    const rig = createRig({
      loader: {
        mayProve: () => false,
        unitsFor: () => 1,
        load: async (keys, block) => {
          loads.push(keys);
          for (const key of isPossible ? keys : []) {
            rig.values.add(key, block, NO_CODE, "proven");
          }
        },
      },
    });
    for (const key of [CODE_KEY, SLOT_KEY]) {
      rig.values.add(key, BLOCK, NO_CODE);
    }
    await rig.learner.add(candidateOf());
    assert.deepEqual([rig.learned[0]?.grade, loads], ["stated", []], "nobody requires one");
    await rig.learner.add(candidateOf({ needs: "proven" }));
    assert.deepEqual([rig.learned[1]?.grade, loads], [isPossible ? "proven" : "stated", [[CODE_KEY, SLOT_KEY]]]);
  });

  test(`if a node returned an error, an answer is ${isPossible ? "" : "not "}learned: it is ${isPossible ? "" : "not "}proven`, async () => {
    const rig = createRig({
      loader: {
        mayProve: () => false,
        unitsFor: () => 1,
        load: async (keys, block) => {
          for (const key of keys) {
            rig.values.add(key, block, NO_CODE, isPossible ? "proven" : "stated");
          }
        },
      },
    });
    await rig.learner.add(candidateOf({ needs: "proven", body: undefined }));
    assert.deepEqual(
      [rig.learned.map(({ grade }) => grade), rig.refusals],
      isPossible ? [["proven"], []] : [[], ["mismatch"]],
    );
  });
}
