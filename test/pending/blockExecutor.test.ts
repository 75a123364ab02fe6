import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { privateKeyToAccount } from "viem/accounts";
import { workerEntry } from "../../src/app/workerEntry.ts";
import type { BlockId } from "../../src/core/heads.ts";
import { formatHeader, hashHeader } from "../../src/ethereum/blockHeader.ts";
import { createBloom } from "../../src/ethereum/bloom.ts";
import { type Address, type Data, type Hash, ZERO_HASH } from "../../src/ethereum/hex.ts";
import { orderedTrieRoot } from "../../src/ethereum/orderedTrie.ts";
import { encodeReceipt } from "../../src/ethereum/receipt.ts";
import type { ChainForks } from "../../src/ethereum/rules.ts";
import { BlockExecutor } from "../../src/pending/blockExecutor.ts";
import type { Execution, FlashblockJob } from "../../src/pending/execution.ts";
import { ExecutorClient } from "../../src/pending/executorClient.ts";
import type { BlockContent } from "../../src/state/sources/blockContent.ts";
import { ExecutedSource } from "../../src/state/sources/executedSource.ts";
import { unpackWrites } from "../../src/state/sources/unpackWrites.ts";
import { WriteSetThread } from "../../src/state/sources/writeSetThread.ts";
import { startAnvil } from "../devnet/anvil.ts";
import { everySource } from "../state/costRig.ts";
import { flashblock, hashOf } from "../support/builders/flashblocks.ts";
import { createAsk, nodeState } from "../support/fakes/nodeState.ts";
import { ActorSigner, ANVIL_KEYS } from "../support/state/actor.ts";
import { randomBlock } from "../support/state/randomBlock.ts";
import { compareTruth, readTruth } from "../support/state/stateTruth.ts";

const SIGNAL = new AbortController().signal;
const CHAIN_ID = 31_337;
const ISTHMUS: ChainForks = {
  chainId: BigInt(CHAIN_ID),
  activations: [],
  blobs: {},
  op: { regolith: 0n, canyon: 0n, ecotone: 0n, fjord: 0n, granite: 0n, holocene: 0n, isthmus: 0n },
};
const DELEGATE: Address = `0x${"ee".repeat(20)}`;
const BLOCKS = 12;
const SALTS = 5;
const SLOTS = [0, 1, 2].map((slot): Hash => `0x${slot.toString(16).padStart(64, "0")}`);

interface Block {
  readonly number: string;
  readonly hash: Hash;
  readonly miner: Address;
}

/** A block of anvil with the fields of its header. */
interface SealedBlock extends Block {
  readonly parentHash: Hash;
  readonly stateRoot: Hash;
  readonly transactionsRoot: Hash;
  readonly extraData: Data;
  readonly mixHash: Hash;
  readonly timestamp: string;
  readonly gasLimit: string;
  readonly baseFeePerGas: string;
  readonly withdrawalsRoot: Hash;
  readonly parentBeaconBlockRoot: Hash;
  readonly transactions: readonly object[];
}

const idOf = ({ number, hash }: Block): BlockId => ({ number: BigInt(number), hash });

const start = async (t: TestContext, isExecutable = true) => {
  const anvil = await startAnvil(["--optimism", "--no-mining", "--order", "fifo"]);
  t.after(() => anvil.close());
  const ask = createAsk(anvil.url);
  const failures: Error[] = [];
  const onFailure = (error: Error) => failures.push(error);
  const bases: bigint[] = [];
  const executor = new ExecutorClient({
    entry: workerEntry("pending"),
    forks: () => ISTHMUS,
    nativeContracts: [],
    stateAt: (base) => {
      bases.push(base.number);
      return nodeState(ask, base);
    },
    onFailure,
  });
  const thread = new WriteSetThread({ entry: workerEntry("writeSets"), onFailure });
  t.after(() => Promise.all([executor.close(), thread.close()]));
  let change = (block: Record<string, unknown>): unknown => block;
  const { find } = new BlockExecutor({ executor, isExecutable: () => isExecutable, skipsReceiptsRoot: false });
  const source = new ExecutedSource({
    ...{ kind: "execution", find, thread, nowMs: () => 0 },
    readBlock: async ({ hash }) =>
      Buffer.from(JSON.stringify(change((await ask("eth_getBlockByHash", [hash, true])) as Record<string, unknown>))),
    blockTimeMs: () => 20_000,
    cost: { ...everySource, unitsOf: () => 20, spend: () => assert.fail("the follower spends the units") },
  });
  const signer = new ActorSigner(CHAIN_ID, ANVIL_KEYS);
  const seal = async (raws: readonly string[]): Promise<Block> => {
    await anvil.callAll(
      "eth_sendRawTransaction",
      raws.map((raw) => [raw]),
    );
    await anvil.call("evm_mine");
    return (await anvil.call("eth_getBlockByNumber", "latest", false)) as Block;
  };
  return { anvil, source, signer, seal, failures, bases, setChange: (next: typeof change) => (change = next) };
};

test("executed blocks have every write of the node, and values that are known are not read again", async (t) => {
  const { anvil, source, signer, seal, failures, bases } = await start(t);
  await seal([await signer.deploy()]);
  const first = await seal([await signer.sign({ kind: "call", from: 0, to: signer.actor, value: 10n ** 18n })]);
  const targets = Array.from({ length: SALTS }, (_, salt) => signer.storeOf(salt));
  const own = [...targets, ...signer.accounts.map(({ address }) => address), signer.actor, first.miner];
  const keys = new Map(own.map((address) => [address.toLowerCase() as Address, SLOTS] as const));
  let before = await readTruth(anvil.callAll, keys, first.number);
  for (let seed = 1; seed <= BLOCKS; seed++) {
    const raws: string[] = [];
    for (const transaction of randomBlock({ seed, signer, targets, slots: SLOTS.length, isPrague: true })) {
      raws.push(await signer.sign(transaction));
    }
    const block = await seal(raws);
    const after = await readTruth(anvil.callAll, keys, block.number);
    const writeSet = await source.read(idOf(block), SIGNAL);
    assert.ok(typeof writeSet !== "string", `block of seed ${seed}: ${writeSet}`);
    const { wrong, missed, unknown } = compareTruth(unpackWrites(writeSet.packed), before, after);
    assert.deepEqual({ wrong, missed, unknown }, { wrong: [], missed: [], unknown: 0 }, `block of seed ${seed}`);
    before = after;
  }
  assert.deepEqual(failures, []);
  const reads = bases.length;
  const last = await seal([await signer.sign({ kind: "call", from: 0, to: signer.actor, value: 1n })]);
  assert.equal(typeof (await source.read(idOf(last), SIGNAL)), "object");
  assert.equal(bases.length, reads, "sender and recipient are known from the blocks before");
});

/** anvil's block, with the gas and the receipts that geth has for its two transactions without logs. */
const gethBlock = (block: SealedBlock, used: readonly (readonly [type: number, gas: bigint])[]) => {
  let cumulativeGasUsed = 0n;
  const receipts = used.map(([type, gas]) => {
    cumulativeGasUsed += gas;
    return encodeReceipt({ type, status: true, cumulativeGasUsed, logs: [], logsBloom: createBloom() });
  });
  const sealed = {
    ...block,
    ...{ number: BigInt(block.number), timestamp: BigInt(block.timestamp), gasLimit: BigInt(block.gasLimit) },
    ...{ baseFeePerGas: BigInt(block.baseFeePerGas), logsBloom: createBloom(), gasUsed: cumulativeGasUsed },
    ...{ blobGasUsed: 0n, excessBlobGas: 0n, difficulty: 0n, receiptsRoot: orderedTrieRoot(receipts) },
  };
  const hash = hashHeader(sealed);
  const transactions = block.transactions.map((transaction) => ({ ...transaction, blockHash: hash }));
  return { hash, ...formatHeader(sealed, hash), withdrawals: [], transactions };
};

/** Measured on go-ethereum 1.17.10: 46,000 gas. anvil refunds the authority that was touched. */
test("an authority that an earlier transaction of the block called does not exist (EIP-7702)", async (t) => {
  const { anvil, source, seal, setChange, failures } = await start(t);
  const [key = "0x"] = ANVIL_KEYS;
  const sender = privateKeyToAccount(key);
  const authority = privateKeyToAccount(`0x${"42".repeat(32)}`);
  const fields = { chainId: CHAIN_ID, value: 0n, gas: 100_000n, maxFeePerGas: 10n ** 10n, maxPriorityFeePerGas: 0n };
  const authorization = await authority.signAuthorization({ address: DELEGATE, chainId: CHAIN_ID, nonce: 0 });
  const { number } = await seal([
    await sender.signTransaction({ type: "eip1559", ...fields, nonce: 0, to: authority.address }),
    await sender.signTransaction({
      ...{ type: "eip7702", ...fields, nonce: 1, to: DELEGATE },
      authorizationList: [authorization],
    }),
  ]);
  const anvilBlock = (await anvil.call("eth_getBlockByNumber", number, true)) as SealedBlock;
  const block = gethBlock(anvilBlock, [
    [2, 21_000n],
    [4, 46_000n],
  ]);
  setChange(() => block);
  const writeSet = await source.read({ number: BigInt(number), hash: block.hash }, SIGNAL);
  assert.ok(typeof writeSet !== "string", String(writeSet));
  assert.deepEqual(failures, []);
});

test("a block that is not executed as its header says has no write set", async (t) => {
  const { source, signer, seal, setChange } = await start(t);
  const block = await seal([await signer.deploy()]);
  setChange((fields) => ({ ...fields, gasUsed: "0x1" }));
  assert.equal(await source.read(idOf(block), SIGNAL), "mismatch", "the block's hash does not cover the response");
  setChange(() => null);
  assert.equal(await source.read(idOf(block), SIGNAL), "mismatch");
  setChange((fields) => fields);
  assert.equal(typeof (await source.read(idOf(block), SIGNAL)), "object");
  assert.equal(await source.read(idOf(block), AbortSignal.abort()), "late");
});

test("a chain whose blocks make writes that are not known here is not executed", async (t) => {
  const { source, seal } = await start(t, false);
  assert.equal(await source.read(idOf(await seal([])), SIGNAL), "unsupported");
});

/** A block without transactions, and the numbers and hashes of its chain. */
const contentOf = (number: bigint, parentHash: Hash): BlockContent => {
  const { environment, commitments } = flashblock(0);
  assert.ok(environment);
  return {
    environment: { ...environment, number, parentHash },
    transactions: [],
    gasUsed: 0n,
    logsBloom: commitments.logsBloom,
    receiptsRoot: ZERO_HASH,
  };
};

/** An executor whose outcomes are given by the test. */
const createFake = (skipsReceiptsRoot = false) => {
  const rebases: (readonly [base: Hash, through: number | undefined])[] = [];
  const jobs: { readonly job: FlashblockJob; readonly end: (execution: Execution) => void }[] = [];
  const { find } = new BlockExecutor({
    executor: {
      execute: (job) => new Promise((end) => jobs.push({ job, end })),
      rebase: ({ hash }, through) => rebases.push([hash, through]),
      close: async () => undefined,
    },
    isExecutable: () => true,
    skipsReceiptsRoot,
  });
  const begin = async (number: bigint, hash: Hash, parentHash: Hash) => {
    const found = find({ number, hash });
    const { changes } = typeof found === "string" ? assert.fail(found) : found;
    const result = typeof changes === "function" ? changes(contentOf(number, parentHash)) : assert.fail();
    return { result, end: jobs.at(-1)?.end ?? assert.fail() };
  };
  const execute = async (...block: Parameters<typeof begin>) => {
    const { result, end } = await begin(...block);
    end(VERIFIED);
    return result;
  };
  return { rebases, jobs, begin, execute };
};

const VERIFIED: Execution = {
  ...{ transactions: [], transactionsRoot: ZERO_HASH, unverified: undefined },
  outcome: { receipts: [], extras: [], changes: new Map() },
};

test("a block is executed on the last one only if that is its parent, has ended, and was verified", async () => {
  const { rebases, begin, execute } = createFake();
  await execute(1n, hashOf(1), hashOf(0));
  await execute(2n, hashOf(2), hashOf(1));
  await execute(2n, hashOf(22), hashOf(1));
  await execute(3n, hashOf(23), hashOf(22));
  const wrong = await begin(4n, hashOf(24), hashOf(23));
  wrong.end({ ...VERIFIED, outcome: undefined, unverified: "gas" });
  assert.equal(await wrong.result, "mismatch");
  const late = await begin(5n, hashOf(25), hashOf(24));
  const next = await begin(6n, hashOf(26), hashOf(25));
  late.end(VERIFIED);
  assert.deepEqual(await late.result, [VERIFIED.outcome?.changes]);
  await execute(6n, hashOf(27), hashOf(25));
  next.end(VERIFIED);
  await next.result;
  await execute(7n, hashOf(28), hashOf(27));
  assert.deepEqual(rebases, [
    [hashOf(0), undefined],
    [hashOf(1), 1],
    [hashOf(1), undefined],
    [hashOf(22), 3],
    [hashOf(23), 4],
    [hashOf(24), undefined],
    [hashOf(25), undefined],
    [hashOf(25), undefined],
    [hashOf(27), 8],
  ]);
});

test("receipts roots of a node that computes them wrongly are not compared", async () => {
  for (const skips of [false, true]) {
    const { jobs, execute } = createFake(skips);
    await execute(1n, hashOf(1), hashOf(0));
    assert.equal(jobs[0]?.job.expected.receiptsRoot, skips ? undefined : ZERO_HASH);
  }
});
