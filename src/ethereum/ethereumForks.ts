import { smaller } from "./bigintOrder.ts";
import { ETHEREUM_FORK_TIMES } from "./forkTimes.ts";
import { isAddress } from "./hex.ts";
import {
  type Activation,
  type BlobSchedule,
  type ChainForks,
  ETHEREUM_FORKS,
  type EthereumFork,
  OP_FORKS,
} from "./rules.ts";

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
  if (row === undefined) {
    return undefined;
  }
  const blocks = Object.entries(row.blocks).map(([fork, block]) => ({ fork, block: BigInt(block) }));
  const times = Object.entries(row.times).map(([fork, time]) => ({ fork, timestamp: BigInt(time) }));
  return {
    chainId,
    ...activationsOf([...blocks, ...times]),
    blobs: BLOBS,
    forkIdBlocks: row.forkIdBlocks.map(BigInt),
    depositContract: row.depositContract,
  };
};

const isOpFork = (name: string): boolean => OP_FORKS.some((fork) => fork === name);

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
