import assert from "node:assert/strict";
import { test } from "node:test";
import { ACCOUNT_FIELDS, type AccountField, type AccountReads, type ReadSet } from "../../src/core/readSet.ts";
import type { Hash } from "../../src/ethereum/hex.ts";
import type { EthereumFork } from "../../src/ethereum/rules.ts";
import { createEngines, type Engines } from "../../src/evm/createEngines.ts";
import { NotExecutableError } from "../../src/evm/executionErrors.ts";
import { ReadRecorder } from "../../src/evm/readRecorder.ts";
import { findLostRead } from "../fuzz/evm/findLostRead.ts";
import { FUZZ_FORKS, FuzzRun, fuzzCaseOf } from "../fuzz/evm/fuzzRun.ts";
import { createRandom } from "../support/builders/randomValues.ts";
import { wrapEngines } from "../support/builders/wrapEngines.ts";

/** Cases in which a planted fault must be found. */
const MAX_CASES = 200;
const SEED = 20_261_122;

const fast = await createEngines("fast");
const reference = await createEngines("reference");

test("random programs: both engines agree on every fork", async () => {
  const run = new FuzzRun(fast, reference);
  for (const fork of FUZZ_FORKS) {
    await run.runCase({ fork, seed: SEED });
  }
  assert.deepEqual(run.differences, []);
});

/** Returns a difference that a change of values outside the read set made. */
const lostReadOf = (engines: Engines, fork: EthereumFork, at: number): Promise<string | undefined> => {
  const fuzzCase = fuzzCaseOf({ fork, seed: SEED + at });
  return findLostRead(engines(fuzzCase.rules), fuzzCase, createRandom(SEED - at));
};

const LOST_HASH: Hash = `0x${"2".padStart(64, "0")}`;
type LoseReads = (reads: ReadSet) => ReadSet;

/** Loses a part of what was read of each account. */
const losingOfAccounts =
  (lose: (account: AccountReads) => AccountReads): LoseReads =>
  (reads) => ({ ...reads, accounts: reads.accounts.map(lose) });

/** Wraps engines that lose a part of what a transaction read on the way from the module. */
const losingReads = (engines: Engines, lose: LoseReads): Engines =>
  wrapEngines(engines, async (engine, context, message, options) => {
    const reads = new ReadRecorder();
    const result = await engine.transact({ ...context, reads }, message, options);
    context.reads?.add(lose(reads.readSet()));
    return result;
  });

const losingField = (field: AccountField): LoseReads =>
  losingOfAccounts((account) => ({ ...account, fields: account.fields.filter((read) => read !== field) }));

/** The faults of a module that loses reads. */
const LOST_READS: readonly (readonly [name: string, lose: LoseReads])[] = [
  ...ACCOUNT_FIELDS.map((field) => [`a lost ${field}`, losingField(field)] as const),
  [
    "a lost slot",
    losingOfAccounts((account) => ({ ...account, slots: account.slots.filter((slot) => slot !== LOST_HASH) })),
  ],
  ["a lost block hash", (reads) => ({ ...reads, blockHashes: reads.blockHashes.slice(1) })],
  ["a lost opcode", (reads) => ({ ...reads, environment: reads.environment.filter((name) => name !== "TIMESTAMP") })],
];

test("random programs: values that a transaction did not read do not change its result", async () => {
  for (const fork of FUZZ_FORKS) {
    for (let at = 0; at < 10; at++) {
      assert.equal(await lostReadOf(fast, fork, at), undefined, `${fork} ${SEED + at}`);
    }
  }
});

test("random programs: nor do they in Amsterdam, which the reference does not execute", async () => {
  let executed = 0;
  for (let at = 0; at < 60; at++) {
    const found = await lostReadOf(fast, "amsterdam", at).catch((error: unknown) => error);
    // The module leaves some transactions to a node.
    if (!(found instanceof NotExecutableError)) {
      assert.equal(found, undefined, `${SEED + at}`);
      executed++;
    }
  }
  assert.ok(executed > 10, `${executed}`);
});

for (const [name, lose] of LOST_READS) {
  test(`random programs: ${name} of the read set is found`, async () => {
    const faulty = losingReads(fast, lose);
    let found: string | undefined;
    for (let at = 0; at < MAX_CASES && found === undefined; at++) {
      found = await lostReadOf(faulty, "osaka", at);
    }
    assert.ok(found);
  });
}
