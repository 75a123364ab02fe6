import { larger, smaller } from "./bigintOrder.ts";
import { ETHEREUM_FORK_TIMES, type EthereumForkTimes, OP_FORK_TIMES, type OpForkTimeRow } from "./forkTimes.ts";
import { isAddress } from "./hex.ts";
import {
  type Activation,
  type BlobSchedule,
  type ChainForks,
  ETHEREUM_FORKS,
  type EthereumFork,
  OP_FORKS,
  type OpFork,
  type OpForkTimes,
} from "./rules.ts";

/** Returns the forks of a public chain that forebay can execute. Calls of any other chain (`undefined`) are forwarded. */
export const chainForks = (chainId: bigint): ChainForks | undefined => ethereumForks(chainId) ?? opForks(chainId);

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null;

const isOpFork = (fork: string): fork is OpFork => OP_FORKS.some((name) => name === fork);

/** Returns the forks up to this one, active from the first block on. */
export const opForksUpTo = (chainId: bigint, fork: OpFork): ChainForks => {
  const forks = OP_FORKS.slice(1, OP_FORKS.indexOf(fork) + 1);
  return createOpForks(chainId, Object.fromEntries(forks.map((name) => [name, 0n])));
};

/** Returns the rules of a chain with one fork from the first block on. */
export const namedForks = (chainId: bigint, fork: EthereumFork | OpFork): ChainForks =>
  isOpFork(fork) ? opForksUpTo(chainId, fork) : fixedForks(chainId, fork);

/** Returns the forks of a genesis file's JSON value, or undefined if it has no chain id. */
export const parseGenesisForks = (genesis: unknown): ChainForks | undefined =>
  isRecord(genesis) && isRecord(genesis.config) && typeof genesis.config.chainId === "number"
    ? genesisForks({ ...genesis.config, chainId: genesis.config.chainId })
    : undefined;

/**
 * The first four bytes of an L1 attributes deposit name the fork. Older forks share one selector.
 * Source: https://specs.optimism.io/protocol/isthmus/l1-attributes.html
 */
const FORKS_BY_SELECTOR: ReadonlyMap<string, OpFork> = new Map([
  ["0x098999be", "isthmus"],
  ["0x3db6be2b", "jovian"],
]);

/** Returns the fork that a block of an OP-stack chain shows, with full transactions. */
export const detectForkFromBlock = (block: unknown): OpFork | undefined => {
  if (!isRecord(block) || !Array.isArray(block.transactions)) {
    return undefined;
  }
  const [first]: readonly unknown[] = block.transactions;
  if (!isRecord(first) || first.type !== "0x7e") {
    return undefined;
  }
  return FORKS_BY_SELECTOR.get(String(first.input).slice(0, 10));
};

/** Code that returns CLZ(1). It fails without the opcode of Osaka and Karst (EIP-7939). */
export const CLZ_CODE = "0x60011e5f5260205ff3";

/** Whether the result of CLZ_CODE is 255, the number of leading zero bits of 1. */
export const hasClz = (result: unknown): boolean => typeof result === "string" && result.endsWith("ff");

/**
 * Adds the forks up to `shown` to a public chain whose newest forks have no time in the table.
 * They count as active since the newest known fork.
 */
export const withShownForks = (forks: ChainForks, shown: OpFork | undefined): ChainForks => {
  if (forks.op === undefined || shown === undefined) {
    return forks;
  }
  const newest = Object.values(forks.op).reduce(larger, 0n);
  const upTo = opForksUpTo(forks.chainId, shown).op ?? {};
  const later = Object.keys(upTo).map((fork) => [fork, newest] as const);
  return { ...forks, op: { ...Object.fromEntries(later), ...forks.op } };
};

/** Whether a chain has the newest forks of the table, Azul or Karst. Its node need not show them. */
export const hasNewestForks = ({ op }: ChainForks): boolean =>
  op === undefined || op.azul !== undefined || op.karst !== undefined;

export const createOpForks = (chainId: bigint, op: OpForkTimes): ChainForks => ({
  chainId,
  activations: [],
  blobs: {},
  op,
});

const rowOf = (chainId: bigint) => OP_FORK_TIMES.find((row) => BigInt(row.chainId) === chainId);

/** Returns the forks of a public chain of the OP stack, or `undefined` for any other chain. */
export const opForks = (chainId: bigint): ChainForks | undefined => {
  const row = rowOf(chainId);
  return row && opForksOf(row);
};

const opForksOf = (row: OpForkTimeRow): ChainForks => {
  const named = Object.entries(row.times).map(([fork, time]) => [fork, BigInt(time)] as const);
  const times = named.filter(([fork]) => isOpFork(fork));
  const forks = createOpForks(BigInt(row.chainId), { regolith: 0n, ...Object.fromEntries(times) });
  const unknown = named.filter(([fork]) => !isOpFork(fork)).map(([, time]) => time);
  if (row.ownRules) {
    return { ...forks, unknownFrom: 0n };
  }
  return unknown.length === 0 ? forks : { ...forks, unknownFrom: unknown.reduce(smaller) };
};

/** Returns the forks of a row of the table, or of a file in its form. */
export const formForks = (row: EthereumForkTimes | OpForkTimeRow): ChainForks =>
  "blocks" in row ? ethereumForksOf(row) : opForksOf(row);

/**
 * Native contracts of Base's nodes since Beryl, as addresses and prefixes of addresses. A B20 token has 0xb2, nine
 * zero bytes, and its variant (0 or 1) at byte 10.
 */
const BASE_NATIVES = [
  "0xb20f000000000000000000000000000000000000",
  "0x8453000000000000000000000000000000000001",
  "0x8453000000000000000000000000000000000002",
  `0xb2${"00".repeat(9)}00`,
  `0xb2${"00".repeat(9)}01`,
];

/** Returns addresses, or prefixes of addresses, whose code is native in a block of that time. A run that reads one is forwarded. */
export const nativeContracts = (chainId: bigint, timestamp: bigint): readonly string[] => {
  const beryl = rowOf(chainId)?.beryl;
  return beryl !== undefined && timestamp >= BigInt(beryl) ? BASE_NATIVES : [];
};

/** Forks that are not listed keep the schedule of the fork before them. */
const BLOBS: Partial<Record<EthereumFork, BlobSchedule>> = {
  cancun: { target: 3n, max: 6n, updateFraction: 3_338_477n },
  prague: { target: 6n, max: 9n, updateFraction: 5_007_716n },
  bpo1: { target: 10n, max: 15n, updateFraction: 8_346_193n },
  bpo2: { target: 14n, max: 21n, updateFraction: 11_684_671n },
};

const isKnownFork = (name: string): name is EthereumFork => ETHEREUM_FORKS.some((fork) => fork === name);

/** Returns the forks of a public network, or `undefined` for any other chain. */
export const ethereumForks = (chainId: bigint): ChainForks | undefined => {
  const row = ETHEREUM_FORK_TIMES.find((each) => BigInt(each.chainId) === chainId);
  return row && ethereumForksOf(row);
};

const ethereumForksOf = (row: EthereumForkTimes): ChainForks => {
  const blocks = Object.entries(row.blocks).map(([fork, block]) => ({ fork, block: BigInt(block) }));
  const times = Object.entries(row.times).map(([fork, time]) => ({ fork, timestamp: BigInt(time) }));
  return {
    chainId: BigInt(row.chainId),
    ...activationsOf([...blocks, ...times.sort(byTime)]),
    blobs: BLOBS,
    forkIdBlocks: row.forkIdBlocks.map(BigInt),
    depositContract: row.depositContract,
  };
};

type NamedActivation = Omit<Activation, "fork"> & { readonly fork: string };

/** The activations of known forks, and the time of the first unknown fork. */
const activationsOf = (named: readonly NamedActivation[]): Pick<ChainForks, "activations" | "unknownFrom"> => {
  const activations = named.flatMap(({ fork, ...when }) => (isKnownFork(fork) ? [{ ...when, fork }] : []));
  const unknown = named.flatMap(({ fork, timestamp }) =>
    isKnownFork(fork) || timestamp === undefined ? [] : [timestamp],
  );
  return unknown.length === 0 ? { activations } : { activations, unknownFrom: unknown.reduce(smaller) };
};

/** Returns the forks of a development chain, which has all forks up to this one from its first block. */
export const fixedForks = (chainId: bigint, fork: EthereumFork): ChainForks => ({
  chainId,
  activations: ETHEREUM_FORKS.slice(0, ETHEREUM_FORKS.indexOf(fork) + 1).map((active) => ({ fork: active })),
  blobs: BLOBS,
});

/** The `config` of a genesis file in geth's format. */
export interface GenesisConfig {
  readonly chainId: number;
  readonly [name: string]: unknown;
}

const GENESIS_BLOCKS: readonly (readonly [EthereumFork, string])[] = [
  ["homestead", "homesteadBlock"],
  ["tangerineWhistle", "eip150Block"],
  ["spuriousDragon", "eip158Block"],
  ["byzantium", "byzantiumBlock"],
  ["constantinople", "constantinopleBlock"],
  ["petersburg", "petersburgBlock"],
  ["istanbul", "istanbulBlock"],
  ["berlin", "berlinBlock"],
  ["london", "londonBlock"],
  ["paris", "mergeNetsplitBlock"],
];
const GENESIS_TIME = /^(?<fork>\w+)Time$/;

/** Parses the `config` of a genesis file in geth's format. */
export const genesisForks = (config: GenesisConfig): ChainForks => {
  const blocks = GENESIS_BLOCKS.flatMap(([fork, name]) => {
    const block = config[name];
    return typeof block === "number" ? [{ fork, block: BigInt(block) }] : [];
  });
  const times = Object.entries(config).flatMap(([name, time]) => {
    const fork = GENESIS_TIME.exec(name)?.groups?.fork;
    return fork === undefined || typeof time !== "number" ? [] : [{ fork, timestamp: BigInt(time) }];
  });
  const { depositContractAddress } = config;
  const isOp = config.optimism !== undefined;
  const opTimes = isOp ? times.filter(({ fork }) => isOpFork(fork)) : [];
  const others = times.filter((time) => !opTimes.includes(time));
  return {
    chainId: BigInt(config.chainId),
    ...activationsOf([{ fork: "chainstart", block: 0n }, ...blocks, ...others.sort(byTime)]),
    ...(isOp ? { op: Object.fromEntries(opTimes.map(({ fork, timestamp }) => [fork, timestamp])) } : {}),
    blobs: { ...BLOBS, ...parseBlobSchedule(config.blobSchedule) },
    ...(isAddress(depositContractAddress) ? { depositContract: depositContractAddress } : {}),
  };
};

/** Forks with the same time are in the order of ETHEREUM_FORKS. */
const byTime = (one: NamedActivation, other: NamedActivation): number =>
  Number((one.timestamp ?? 0n) - (other.timestamp ?? 0n)) || orderOf(one.fork) - orderOf(other.fork);
const orderOf = (name: string): number => (ETHEREUM_FORKS as readonly string[]).indexOf(name);

const parseBlobSchedule = (value: unknown): Partial<Record<EthereumFork, BlobSchedule>> => {
  const schedules: Partial<Record<EthereumFork, BlobSchedule>> = {};
  if (typeof value !== "object" || value === null) {
    return schedules;
  }
  for (const [fork, entry] of Object.entries(value)) {
    const { target, max, baseFeeUpdateFraction } = entry as Record<string, number>;
    if (target === undefined || max === undefined || baseFeeUpdateFraction === undefined) {
      continue;
    }
    schedules[fork as EthereumFork] = {
      target: BigInt(target),
      max: BigInt(max),
      updateFraction: BigInt(baseFeeUpdateFraction),
    };
  }
  return schedules;
};
