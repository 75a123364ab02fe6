import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { inspect } from "node:util";
import type { Address, Hash } from "../../../src/ethereum/hex.ts";
import { runWriteSetJob } from "../../../src/state/sources/writeSetTask.ts";
import { unpackWrites } from "../../../src/state/store/packedWrites.ts";
import { type Anvil, startAnvil } from "../../devnet/anvil.ts";
import { ActorSigner, ANVIL_KEYS } from "../../support/state/actor.ts";
import { randomBlock } from "../../support/state/randomBlock.ts";
import { compareTruth, readTruth } from "../../support/state/stateTruth.ts";

const SLOTS = [0, 1, 2].map((slot): Hash => `0x${slot.toString(16).padStart(64, "0")}`);
const SALTS = 6;
const BLOCKS = 40;
const CHAIN_ID = 31_337;

interface Block {
  readonly number: string;
  readonly hash: Hash;
  readonly miner: Address;
  readonly transactions: readonly { readonly hash: Hash }[];
}

const encode = (value: unknown) => Buffer.from(JSON.stringify(value));

const readBlock = async (anvil: Anvil): Promise<Block> =>
  (await anvil.call("eth_getBlockByNumber", "latest", true)) as Block;

const CALLS = { tracer: "callTracer" };

const composed = async (anvil: Anvil, block: Block) => {
  const tracer = { tracer: "prestateTracer", tracerConfig: { diffMode: true } };
  const trace = await anvil.call("debug_traceBlockByHash", block.hash, tracer);
  const id = { number: BigInt(block.number), hash: block.hash };
  const job = { kind: "trace", block: id, body: encode(block), trace: encode(trace), contracts: [] } as const;
  const first = runWriteSetJob(job);
  const calls = first.kind === "unlisted" && (await anvil.call("debug_traceBlockByHash", block.hash, CALLS));
  const output = calls === false ? first : runWriteSetJob({ ...job, calls: encode(calls) });
  assert.equal(output.kind, "written", JSON.stringify(output));
  return output.kind === "written" ? unpackWrites(output.packed) : new Map();
};

const playBlocks = async (t: TestContext, args: readonly string[], isPrague: boolean) => {
  const anvil = await startAnvil(["--no-mining", "--order", "fifo", ...args]);
  t.after(() => anvil.close());
  const signer = new ActorSigner(CHAIN_ID, ANVIL_KEYS);
  const send = async (raws: readonly string[]) => {
    await anvil.callAll(
      "eth_sendRawTransaction",
      raws.map((raw) => [raw]),
    );
    await anvil.call("evm_mine");
    return readBlock(anvil);
  };
  await send([
    await signer.deploy(),
    await signer.sign({ kind: "call", from: 0, to: signer.actor, value: 10n ** 18n }),
  ]);
  const targets = Array.from({ length: SALTS }, (_, salt) => signer.storeOf(salt));
  const first = await readBlock(anvil);
  const own = [...targets, ...signer.accounts.map(({ address }) => address), signer.actor, first.miner];
  const keys = new Map(own.map((address) => [address.toLowerCase() as Address, SLOTS] as const));
  let before = await readTruth(anvil.callAll, keys, first.number);
  const total = { compared: 0, unknown: 0, transactions: 0 };
  for (let seed = 1; seed <= BLOCKS; seed++) {
    const transactions = randomBlock({ seed, signer, targets, slots: SLOTS.length, isPrague });
    const block = await send(await signInOrder(signer, transactions));
    assert.equal(block.transactions.length, transactions.length, `all transactions of block ${seed} are included`);
    const after = await readTruth(anvil.callAll, keys, block.number);
    const { wrong, missed, compared, unknown } = compareTruth(await composed(anvil, block), before, after);
    assert.deepEqual(
      { wrong, missed },
      { wrong: [], missed: [] },
      `block of seed ${seed}: ${inspect(transactions, { depth: 4 })}`,
    );
    total.compared += compared;
    total.unknown += unknown;
    total.transactions += transactions.length;
    before = after;
  }
  return total;
};

const signInOrder = async (signer: ActorSigner, transactions: ReturnType<typeof randomBlock>) => {
  const raws: string[] = [];
  for (const transaction of transactions) {
    raws.push(await signer.sign(transaction));
  }
  return raws;
};

for (const { name, args, isPrague } of [
  { name: "Osaka", args: ["--hardfork", "osaka"], isPrague: true },
  { name: "Shanghai, where accounts are destroyed", args: ["--hardfork", "shanghai"], isPrague: false },
  { name: "an OP chain", args: ["--optimism"], isPrague: true },
]) {
  test(`write sets composed from traces of random blocks equal what the node says: ${name}`, async (t) => {
    const { compared, unknown } = await playBlocks(t, args, isPrague);
    assert.ok(compared > 1_000, `${compared} values`);
    assert.ok(unknown < compared / 4, `${unknown} of ${compared} values are unknown`);
  });
}
