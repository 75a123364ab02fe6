import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import type { HeaderFields } from "../../src/core/heads.ts";
import type { Address, Hash } from "../../src/ethereum/hex.ts";
import { parseData } from "../../src/ethereum/hex.ts";
import { orderedTrieRoot } from "../../src/ethereum/orderedTrie.ts";
import type { ChainForks } from "../../src/ethereum/rules.ts";
import { FeedSource } from "../../src/state/sources/feedSource.ts";
import { unpackWrites } from "../../src/state/store/packedWrites.ts";
import { createDevnet } from "../devnet/devnet.ts";
import { flashblock, hashOf, raw } from "../support/builders/flashblocks.ts";
import { createAsk } from "../support/fakes/nodeState.ts";
import { ActorSigner, type ActorTransaction, ANVIL_KEYS } from "../support/state/actor.ts";
import { randomBlock } from "../support/state/randomBlock.ts";
import { compareTruth, readTruth } from "../support/state/stateTruth.ts";
import { createDevnetPending } from "./devnetPending.ts";
import { createRig } from "./pendingRig.ts";
import { createBegunRig, environmentFields } from "./sealBlock.ts";

const SIGNAL = new AbortController().signal;
const RING_SLOTS = 8_191n;
const slot = (number: number | bigint): Hash => `0x${number.toString(16).padStart(64, "0")}`;

const ISTHMUS: ChainForks = {
  chainId: 901n,
  activations: [],
  blobs: {},
  op: { regolith: 0n, canyon: 0n, ecotone: 0n, fjord: 0n, granite: 0n, holocene: 0n, isthmus: 0n },
};
const BLOCKS = 12;
const SALTS = 5;
const SLOTS = [0, 1, 2].map(slot);
/** Accounts that a block writes outside transactions or in its deposit. */
const SYSTEM_ACCOUNTS: readonly Address[] = [
  "0x4200000000000000000000000000000000000011",
  "0x4200000000000000000000000000000000000015",
  "0x4200000000000000000000000000000000000019",
  "0x420000000000000000000000000000000000001a",
  "0x420000000000000000000000000000000000001b",
];

test("write sets of blocks that the feed brought before have every write of the node, and no unknown value", async (t) => {
  const devnet = await createDevnet({ manual: true, generation: "e" });
  const signer = new ActorSigner(devnet.chainId, ANVIL_KEYS);
  // The compilation takes seconds. If the feed is silent for that long, it is opened again.
  const deployment = await signer.deploy();
  const rig = await createDevnetPending(devnet, { forks: ISTHMUS });
  t.after(async () => {
    await rig.pending.close();
    await devnet.close();
  });
  const ask = createAsk(devnet.anvilUrl);
  const source = new FeedSource((block, signal) => rig.pending.findExecuted(block, signal));
  const send = createAsk(devnet.url);
  const targets = Array.from({ length: SALTS }, (_, salt) => signer.storeOf(salt));
  const own = [...targets, ...signer.accounts.map(({ address }) => address), signer.actor, ...SYSTEM_ACCOUNTS];
  const keys = new Map(own.map((address) => [address.toLowerCase() as Address, SLOTS] as const));
  const callAll = (method: string, params: readonly (readonly unknown[])[]) =>
    Promise.all(params.map((each) => ask(method, each)));

  const playBlock = async (raws: readonly string[]) => {
    await step(rig, devnet);
    for (const each of raws) {
      await send("eth_sendRawTransaction", [each]);
    }
    await step(rig, devnet);
    await devnet.sealNow();
    await rig.heads.look();
    return rig.heads.current().latest;
  };

  await playBlock([deployment]);
  await playBlock([await signer.sign({ kind: "call", from: 0, to: signer.actor, value: 10n ** 18n })]);
  let compared = 0;
  for (let seed = 1; seed <= BLOCKS; seed++) {
    const transactions = randomBlock({ seed, signer, targets, slots: SLOTS.length, isPrague: true });
    const block = await playBlock(await signAll(signer, transactions));
    const ofBlock = new Map<Address, readonly Hash[]>(keys);
    const time = block.timestamp % RING_SLOTS;
    ofBlock.set("0x000f3df6d732807ef1319fb7b8bb8522d0beac02", [slot(time), slot(time + RING_SLOTS)]);
    ofBlock.set("0x0000f90827f1c53a10cb7a02335b175320002935", [slot((block.number - 1n) % RING_SLOTS)]);
    const before = await readTruth(callAll, ofBlock, slotless(block.number - 1n));
    const after = await readTruth(callAll, ofBlock, slotless(block.number));
    const writeSet = await source.read(block, SIGNAL);
    assert.ok(typeof writeSet !== "string", `block of seed ${seed}: ${writeSet}`);
    const outcome = compareTruth(unpackWrites(writeSet.packed), before, after);
    const { wrong, missed, unknown } = outcome;
    assert.deepEqual({ wrong, missed, unknown }, { wrong: [], missed: [], unknown: 0 }, `block of seed ${seed}`);
    compared += outcome.compared;
  }
  assert.ok(compared > BLOCKS * 90, `${compared} values`);
  assert.deepEqual(rig.failures, []);
});

const slotless = (number: bigint): string => `0x${number.toString(16)}`;

const signAll = async (signer: ActorSigner, transactions: readonly ActorTransaction[]): Promise<string[]> => {
  const raws: string[] = [];
  for (const transaction of transactions) {
    raws.push(await signer.sign(transaction));
  }
  return raws;
};

/** Sends the next message, and waits for the view that has its state. */
const step = async (
  { pending }: Awaited<ReturnType<typeof createDevnetPending>>,
  devnet: Awaited<ReturnType<typeof createDevnet>>,
): Promise<void> => {
  const { promise, resolve } = Promise.withResolvers<void>();
  let wanted: string | undefined;
  const look = (): void => {
    const { newest, stateFrom } = pending.view().pending ?? {};
    if (newest?.hash === wanted && stateFrom === "view") {
      resolve();
    }
  };
  const stop = pending.subscribe(look);
  wanted = (await devnet.step()).diff.block_hash;
  look();
  await promise;
  stop();
};

/** More than the time for an execution. */
const DEADLINE_MS = 10_000;
const ROOT = hashOf(1);
const raws = [raw(1), raw(2)];

/** The header of a block with these transactions, as the fake executor executes it. */
const header = (number: bigint, change: HeaderFields = {}): HeaderFields => ({
  transactionsRoot: orderedTrieRoot(raws.map(parseData)),
  receiptsRoot: ROOT,
  gasUsed: "0xa410",
  ...environmentFields(number),
  ...change,
});

const messages = (number: bigint) => raws.map((each, index) => flashblock(index, { number, transactions: [each] }));

const createSource = (t: TestContext, rig = createRig(t)) => {
  const source = new FeedSource((block, signal) => rig.pending.findExecuted(block, signal));
  return { source, rig, read: () => source.read(rig.heads.current().latest, SIGNAL) };
};

test("a block that equals its execution has a write set, and so has the next one on it", async (t) => {
  const { rig, read } = createSource(t);
  await rig.send(...messages(101n), ...messages(102n));
  rig.heads.move({ number: 101n, header: header(101n) });
  assert.equal(typeof (await read()), "object");
  rig.heads.move({ number: 102n, header: header(102n) });
  assert.equal(typeof (await read()), "object");
});

test("a null beacon root is an absent one", async (t) => {
  const { rig, read } = createSource(t);
  await rig.send(...messages(101n));
  rig.heads.move({ number: 101n, header: header(101n, { parentBeaconBlockRoot: null }) });
  assert.equal(typeof (await read()), "object");
});

test("a block that differs from its execution has no write set, and nothing is executed on its state", async (t) => {
  const changes: Record<string, HeaderFields> = {
    transactions: { transactionsRoot: orderedTrieRoot([...raws, raw(3)].map(parseData)) },
    gas: { gasUsed: "0xa411" },
    receipts: { receiptsRoot: hashOf(2) },
    timestamp: { timestamp: "0x1" },
    gasLimit: { gasLimit: "0x1" },
    baseFee: { baseFeePerGas: "0x8" },
    feeRecipient: { miner: "0x4200000000000000000000000000000000000019" },
    prevRandao: { mixHash: hashOf(8) },
    beaconRoot: { parentBeaconBlockRoot: hashOf(9) },
  };
  for (const [name, change] of Object.entries(changes)) {
    await t.test(name, async (t) => {
      const { rig, read } = createSource(t);
      await rig.send(...messages(101n));
      rig.heads.move({ number: 101n, header: header(101n, change) });
      assert.equal(await read(), "incomplete");
      assert.equal(rig.fake.rebased.at(-1)?.through, undefined, "no value of the execution stays");
    });
  }
});

test("a block on a block that differs has no write set, even if it equals its own execution", async (t) => {
  const { rig, read } = createSource(t, await createBegunRig(t));
  await rig.send(...messages(101n), ...messages(102n));
  assert.equal(rig.shown(), "102-1");
  rig.heads.move(
    { number: 101n, header: header(101n, { receiptsRoot: hashOf(2) }) },
    { number: 102n, header: header(102n) },
  );
  assert.equal(await read(), "incomplete");
});

test("a block with an unverified message has no write set", async (t) => {
  const { rig, read } = createSource(t);
  rig.fake.say("101-1", { unverified: "gas" });
  await rig.send(...messages(101n));
  rig.heads.move({ number: 101n, header: header(101n) });
  assert.equal(await read(), "incomplete");
});

for (const [unverified, expected] of [
  [undefined, "object"],
  ["gas", "incomplete"],
] as const) {
  const title = unverified === undefined ? "a write set once it ends" : "no write set if its result is wrong";
  test(`a block whose execution missed its deadline has ${title}`, async (t) => {
    const { rig, read } = createSource(t);
    rig.fake.say("101-1", unverified === undefined ? {} : { unverified });
    const release = rig.fake.hold();
    await rig.send(...messages(101n));
    await rig.pass(DEADLINE_MS);
    rig.heads.move({ number: 101n, header: header(101n) });
    const reading = read();
    release();
    const writeSet = await reading;
    assert.equal(typeof writeSet === "object" ? "object" : writeSet, expected);
  });
}

test("a block without messages has no write set, and nobody waits for it", async (t) => {
  const { rig, read } = createSource(t);
  rig.heads.move({ number: 101n, header: header(101n) });
  assert.equal(await read(), "incomplete");
});
