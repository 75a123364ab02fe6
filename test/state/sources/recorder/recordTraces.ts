import { mkdirSync, writeFileSync } from "node:fs";
import type { Address, Hash } from "../../../../src/ethereum/hex.ts";
import { startAnvil } from "../../../devnet/anvil.ts";
import { ActorSigner, type ActorTransaction } from "../../../support/state/actor.ts";
import { readTruth, type StateTruth } from "../../../support/state/stateTruth.ts";
import { anvilPlayer, gethPlayer, type Player } from "./players.ts";
import { startGeth } from "./recordGeth.ts";
import { allRecordings, call, type Recording, slot } from "./recordings.ts";

/** A block of a real node with its diff trace, and the values of keys before and after it. */
export interface RecordedTrace {
  readonly name: string;
  readonly client: string;
  readonly what: string;
  readonly block: Readonly<Record<string, unknown>> & { readonly number: string; readonly hash: Hash };
  readonly trace: unknown;
  /** The trace with `disableCode`. */
  readonly traceWithoutCode?: unknown;
  /** The RLP of the block access list, if the header has its hash. */
  readonly accessList?: string;
  readonly before: StateTruth;
  readonly after: StateTruth;
}

const KEYS = [
  "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80",
  "0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d",
  "0x5de4111afa1a4b94908f83103eb1f1706367c2e68ca870fc3fb9a804cdab365a",
  "0x7c852118294e51e653712a81e05800f419141751be58f605c371e15141b007a6",
] as const;
const FOLDER = new URL("../recorded/", import.meta.url);

const STORE_SLOTS = [0, 1, 2].map(slot);
const TRACER = { tracer: "prestateTracer", tracerConfig: { diffMode: true } };
const WITHOUT_CODE = { tracer: "prestateTracer", tracerConfig: { diffMode: true, disableCode: true } };

const record = async (player: Player, signer: ActorSigner, recording: Recording): Promise<RecordedTrace> => {
  const { name, what, setup = [], transactions, withdrawals = [], accounts, slots } = recording;
  const sign = async (list: readonly ActorTransaction[]) => {
    const raws: string[] = [];
    for (const transaction of list) {
      raws.push(await signer.sign(transaction));
    }
    return raws;
  };
  for (const list of setup) {
    await player.seal(await sign(list), []);
  }
  const number = await player.seal(await sign(transactions), withdrawals);
  const block = (await player.call("eth_getBlockByNumber", number, true)) as RecordedTrace["block"] & {
    readonly miner: Address;
    readonly timestamp: string;
  };
  const own = [...accounts, ...signer.accounts.map(({ address }) => address), signer.actor, block.miner];
  const keys = new Map<Address, readonly Hash[]>(own.map((address) => [address.toLowerCase() as Address, STORE_SLOTS]));
  for (const [address, list] of slots?.(BigInt(number), BigInt(block.timestamp)) ?? []) {
    keys.set(address, list);
  }
  return {
    name,
    client: player.client,
    what,
    block,
    trace: await player.call("debug_traceBlockByHash", block.hash, TRACER),
    ...(recording.hasWithoutCode
      ? { traceWithoutCode: await player.call("debug_traceBlockByHash", block.hash, WITHOUT_CODE) }
      : {}),
    before: await readTruth(player.callAll, keys, `0x${(BigInt(number) - 1n).toString(16)}`),
    after: await readTruth(player.callAll, keys, number),
  };
};

/** Writes one line for each block. */
const write = (client: string, recorded: readonly RecordedTrace[]): void => {
  mkdirSync(FOLDER, { recursive: true });
  const lines = recorded.map((each) => `${JSON.stringify(each)}\n`);
  writeFileSync(new URL(`${client}.jsonl`, FOLDER), lines.join(""));
};

const deployAndFund = async (player: Player, signer: ActorSigner): Promise<void> => {
  await player.seal([await signer.deploy()], []);
  await player.seal([await signer.sign(call(0, signer.actor, 10n ** 18n))], []);
};

const FORKS_AFTER_SHANGHAI = ["cancunTime", "pragueTime", "osakaTime", "bogotaTime", "blobSchedule"];

/** The forks of geth that are recorded, with the names of their recordings. */
const GETH_PLANS = [
  {
    suffix: "Geth",
    change: (_config: Record<string, unknown>) => undefined,
    names: [
      ...["clearedSlots", "destructionOfNewUndone", "createdAgain", "newCode", "destroyedFunded"],
      ...["delegated", "delegationCleared", "emptyBlock", "withdrawals", "requests"],
    ],
  },
  {
    suffix: "GethShanghai",
    change: (config: Record<string, unknown>) => {
      for (const fork of FORKS_AFTER_SHANGHAI) {
        delete config[fork];
      }
    },
    names: ["destroyed", "destructionUndone"],
  },
  {
    suffix: "GethAmsterdam",
    change: (config: Record<string, unknown>) => {
      delete config.bogotaTime;
      config.amsterdamTime = 0;
    },
    names: [
      ...["clearedSlots", "destructionOfNewUndone", "createdAgain", "destroyedFunded"],
      ...["delegationCleared", "withdrawals", "requests"],
    ],
  },
];

const recordAll = async (
  player: Player,
  signer: ActorSigner,
  { names, suffix }: { readonly names: readonly string[]; readonly suffix: string },
): Promise<RecordedTrace[]> => {
  const recorded: RecordedTrace[] = [];
  for (const recording of allRecordings(signer).filter(({ name }) => names.includes(name))) {
    recorded.push({ ...(await record(player, signer, recording)), name: `${recording.name}${suffix}` });
  }
  return recorded;
};

const recordGeth = async (
  binary: string,
  { suffix, change, names }: (typeof GETH_PLANS)[number],
): Promise<RecordedTrace[]> => {
  const signer = new ActorSigner(1_337, KEYS);
  const geth = await startGeth(
    binary,
    signer.accounts.map(({ address }) => address),
    ({ config }) => change(config),
  );
  try {
    const player = gethPlayer(geth);
    await deployAndFund(player, signer);
    const recorded = await recordAll(player, signer, { names, suffix });
    const blocks = recorded.map(({ block }) => block).filter(({ blockAccessListHash }) => blockAccessListHash);
    const lists = blocks.length === 0 ? [] : await geth.readAccessLists(blocks);
    return recorded.map((each) => {
      const accessList = lists[blocks.indexOf(each.block)];
      return accessList === undefined ? each : { ...each, accessList };
    });
  } finally {
    await geth.close();
  }
};

const ANVIL_PLANS = [
  { suffix: "Anvil", fork: "osaka", names: ["delegationCleared", "newCode", "destructionOfNewUndone"] },
  { suffix: "AnvilShanghai", fork: "shanghai", names: ["destroyed"] },
];

const recordAnvil = async ({ suffix, fork, names }: (typeof ANVIL_PLANS)[number]): Promise<RecordedTrace[]> => {
  const anvil = await startAnvil(["--no-mining", "--order", "fifo", "--hardfork", fork]);
  try {
    const signer = new ActorSigner(31_337, KEYS);
    const player = await anvilPlayer(anvil);
    await deployAndFund(player, signer);
    return await recordAll(player, signer, { names, suffix });
  } finally {
    await anvil.close();
  }
};

/** Records the blocks of test/state/sources/recorded. Usage: `npx node test/state/sources/recorder/recordTraces.ts <path of geth>`. */
if (import.meta.main) {
  const [binary] = process.argv.slice(2);
  if (binary === undefined) {
    throw new Error("the path of geth is missing");
  }
  const ofGeth: RecordedTrace[] = [];
  for (const plan of GETH_PLANS) {
    ofGeth.push(...(await recordGeth(binary, plan)));
  }
  write("geth", ofGeth);
  const ofAnvil: RecordedTrace[] = [];
  for (const plan of ANVIL_PLANS) {
    ofAnvil.push(...(await recordAnvil(plan)));
  }
  write("anvil", ofAnvil);
}
