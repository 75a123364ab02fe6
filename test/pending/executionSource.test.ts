import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { workerEntry } from "../../src/app/workerEntry.ts";
import type { BlockId } from "../../src/core/heads.ts";
import type { Address, Hash } from "../../src/ethereum/hex.ts";
import type { ChainForks } from "../../src/ethereum/rules.ts";
import { ExecutionSource } from "../../src/pending/executionSource.ts";
import { createExecutor } from "../../src/pending/executor.ts";
import { WriteSetThread } from "../../src/state/sources/writeSetThread.ts";
import { startAnvil } from "../devnet/anvil.ts";
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
const BLOCKS = 12;
const SALTS = 5;
const SLOTS = [0, 1, 2].map((slot): Hash => `0x${slot.toString(16).padStart(64, "0")}`);

interface Block {
  readonly number: string;
  readonly hash: Hash;
  readonly miner: Address;
}

const idOf = ({ number, hash }: Block): BlockId => ({ number: BigInt(number), hash });

const start = async (t: TestContext, isExecutable = true) => {
  const anvil = await startAnvil(["--optimism", "--no-mining", "--order", "fifo"]);
  t.after(() => anvil.close());
  const ask = createAsk(anvil.url);
  const failures: Error[] = [];
  const onFailure = (error: Error) => failures.push(error);
  const bases: bigint[] = [];
  const executor = createExecutor({
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
  const source = new ExecutionSource({
    executor,
    thread,
    isExecutable: () => isExecutable,
    readBlock: async ({ hash }) =>
      Buffer.from(JSON.stringify(change((await ask("eth_getBlockByHash", [hash, true])) as Record<string, unknown>))),
    blockTimeMs: () => 20_000,
    unitsOf: () => 20,
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
    const { wrong, missed, unknown } = compareTruth(writeSet, before, after);
    assert.deepEqual({ wrong, missed, unknown }, { wrong: [], missed: [], unknown: 0 }, `block of seed ${seed}`);
    before = after;
  }
  assert.deepEqual(failures, []);
  const reads = bases.length;
  const last = await seal([await signer.sign({ kind: "call", from: 0, to: signer.actor, value: 1n })]);
  assert.equal(typeof (await source.read(idOf(last), SIGNAL)), "object");
  assert.equal(bases.length, reads, "sender and recipient are known from the blocks before");
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
