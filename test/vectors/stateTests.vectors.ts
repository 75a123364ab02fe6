import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { globSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { after, test } from "node:test";
import { RLP } from "@ethereumjs/rlp";
import { blobBaseFee } from "../../src/ethereum/blockFees.ts";
import { type Address, type Data, formatData, type Hash, parseData } from "../../src/ethereum/hex.ts";
import { keccak256, keccak256Hex } from "../../src/ethereum/keccak.ts";
import { parseTransaction } from "../../src/ethereum/parseTransaction.ts";
import { stripZeros } from "../../src/ethereum/rlp.ts";
import type { Rules } from "../../src/ethereum/rules.ts";
import { DEPOSIT_TYPE, InvalidTransaction } from "../../src/ethereum/transaction.ts";
import { createEngines } from "../../src/evm/createEngines.ts";
import type { BlockEnvironment, Engine, ExecutionContext, TransactionResult } from "../../src/evm/engine.ts";
import { TransactionError } from "../../src/evm/executionErrors.ts";
import { recoverSender } from "../../src/evm/senders/recoverAddress.ts";
import { messageOf } from "../../src/evm/transactionMessage.ts";
import { type PlainAccount, type PlainState, readerOf, stateRoot, withChanges } from "../support/builders/stateRoot.ts";
import { vectorFolder } from "./vectorFolder.ts";

/** Runs every N-th case; 1 for all cases. */
const SAMPLE = Number(process.env.STATE_TESTS_SAMPLE ?? "1");
const REFERENCE_SAMPLE = Number(process.env.STATE_TESTS_REFERENCE_SAMPLE ?? "10");

const BLOBS = { target: 3n, max: 6n, updateFraction: 3_338_477n };
const RULES: Rules = { chainId: 1n, fork: "cancun", blobs: BLOBS };

/**
 * The reference engine does not run these files, because a case takes seconds in the library's interpreter, and those of the first
 * line minutes. STATE_TESTS_SLOW=1 includes them. All except those of the first line have passed that way.
 */
const SLOW_FILES = [
  ...["loopExp", "loopMul", "performanceTester", "CALLBlake2f_MaxRounds"],
  ...["Call50000", "Call50000_sha256", "Callcode50000", "Return50000", "Return50000_2", "Call20KbytesContract50_2"],
  ...["static_Call50000", "static_Call50000_sha256", "static_Call50000_ecrec", "static_Call50000_rip160"],
  ...["static_Call50000_identity", "static_Call50000_identity2", "static_Call50000bytesContract50_2"],
  ...["static_Return50000_2", "static_LoopCallsThenRevert", "QuadraticComplexitySolidity_CallDataCopy"],
  ...["15_tstoreCannotBeDosd", "21_tstoreCannotBeDosdOOO", "run_until_out_of_gas", "ContractCreationSpam"],
].map((name) => `${name}.json`);
const REFERENCE_RUNS_SLOW = process.env.STATE_TESTS_SLOW === "1";

interface Post {
  readonly hash: Hash;
  readonly logs: Hash;
  readonly txbytes: Data;
  readonly expectException?: string;
}
interface StateTest {
  readonly env: Readonly<Record<string, Data>>;
  readonly pre: Readonly<
    Record<Address, { balance: Data; nonce: Data; code: Data; storage: Readonly<Record<Data, Data>> }>
  >;
  readonly post: Readonly<Record<string, readonly Post[]>>;
}

/** The engines. Each runs every N-th case. */
const ENGINES = [
  { kind: "fast", sample: SAMPLE, runsSlow: true },
  { kind: "reference", sample: REFERENCE_SAMPLE, runsSlow: REFERENCE_RUNS_SLOW },
] as const;
const folder = mkdtempSync(join(tmpdir(), "state-tests-"));
after(() => rmSync(folder, { recursive: true }));
execFileSync("tar", ["-xJf", join(vectorFolder, "state-tests/general-state-tests.tar.xz"), "-C", folder]);

for (const { kind, sample, runsSlow } of ENGINES) {
  test(`state tests with the engine ${kind}: root and logs`, { timeout: 1_200_000 }, async () => {
    const engine = (await createEngines(kind))(RULES);
    assert.deepEqual(await runAll(engine, sample, runsSlow), []);
  });
}

/** Runs every N-th case, and returns those that differ. */
const runAll = async (engine: Engine, sample: number, runsSlow: boolean): Promise<readonly string[]> => {
  const differing: string[] = [];
  let cases = 0;
  let left = 0;
  for (const file of globSync("**/*.json", { cwd: folder }).sort()) {
    if (!runsSlow && SLOW_FILES.includes(basename(file))) {
      left++;
      continue;
    }
    const tests: Record<string, StateTest> = JSON.parse(readFileSync(join(folder, file), "utf8"));
    for (const [name, stateTest] of Object.entries(tests)) {
      for (const [at, post] of (stateTest.post.Cancun ?? []).entries()) {
        cases++;
        if (cases % sample !== 0) {
          continue;
        }
        const difference = await run(engine, stateTest, post);
        if (difference === undefined) {
          continue;
        }
        const entry = `${basename(file)} ${name} ${at}: ${difference}`;
        process.stdout.write(`differs: ${entry}\n`);
        differing.push(entry);
      }
    }
  }
  process.stdout.write(
    `state tests: ${cases} cases, one in ${sample} run, ${differing.length} differ, ${left} slow files left out\n`,
  );
  return differing;
};

const run = async (engine: Engine, stateTest: StateTest, post: Post): Promise<string | undefined> => {
  const pre = parseState(stateTest.pre);
  const block = parseBlock(stateTest.env);
  const state = engine.createState(readerOf(pre, block.blockHash));
  let result: TransactionResult | undefined;
  try {
    result = await apply(post, { engine, state, block });
  } catch (error) {
    const isRefusal = error instanceof TransactionError || error instanceof InvalidTransaction;
    if (!isRefusal) {
      return `threw ${error instanceof Error ? error.stack : error}`;
    }
    if (post.expectException === undefined) {
      return `refused: ${error.message}`;
    }
  }
  if (result !== undefined && post.expectException !== undefined) {
    return `accepted: ${post.expectException}`;
  }
  const root = await stateRoot(withChanges(pre, state.changes()));
  if (formatData(root) !== post.hash) {
    return `root (${result?.status} ${result?.halt} gas ${result?.gasUsed})`;
  }
  return logsHash(result) === post.logs ? undefined : "logs";
};

const apply = (post: Post, { engine, state, block }: ExecutionContext): Promise<TransactionResult> => {
  const transaction = parseTransaction(parseData(post.txbytes));
  if (transaction.type === DEPOSIT_TYPE) {
    throw new InvalidTransaction("a deposit");
  }
  const sender = recoverSender(transaction);
  if (sender === undefined) {
    throw new InvalidTransaction("no sender");
  }
  const message = messageOf(transaction, sender);
  // Rules of the block, which a block builder enforces.
  if (message.gas > block.gasLimit) {
    throw new TransactionError("blockGasLimit", "gas limit reached");
  }
  if (BigInt(message.blobVersionedHashes.length) > BLOBS.max) {
    throw new TransactionError("blobs", "too many blobs");
  }
  return engine.transact({ state, block }, message);
};

const parseState = (pre: StateTest["pre"]): PlainState =>
  new Map(
    Object.entries(pre).map(([address, { balance, nonce, code, storage }]) => {
      const bytes = parseData(code);
      const slots = Object.entries(storage).map(
        ([slot, value]) => [word(slot), stripZeros(parseData(word(value)))] as const,
      );
      const account: PlainAccount = {
        nonce: BigInt(nonce),
        balance: BigInt(balance),
        code: bytes,
        codeHash: keccak256Hex(bytes),
        storage: new Map(slots.filter(([, value]) => value.length > 0)),
      };
      return [address as Address, account] as const;
    }),
  );

const word = (hex: string): Hash => `0x${hex.slice(2).padStart(64, "0")}`;

const parseBlock = (env: StateTest["env"]): BlockEnvironment => ({
  number: BigInt(env.currentNumber ?? "0x1"),
  timestamp: BigInt(env.currentTimestamp ?? "0x0"),
  coinbase: env.currentCoinbase ?? "0x",
  gasLimit: BigInt(env.currentGasLimit ?? "0x0"),
  baseFee: BigInt(env.currentBaseFee ?? "0x0"),
  prevRandao: word(env.currentRandom ?? "0x0"),
  blobBaseFee: blobBaseFee(BigInt(env.currentExcessBlobGas ?? "0x0"), BLOBS),
  // The same as in the tools of the tests.
  blockHash: (number) => keccak256Hex(new TextEncoder().encode(number.toString())),
});

const logsHash = (result: TransactionResult | undefined): Hash => {
  const logs = (result?.logs ?? []).map(({ address, topics, data }) => [
    parseData(address),
    topics.map(parseData),
    parseData(data),
  ]);
  return formatData(keccak256(RLP.encode(logs)));
};
