import { isAddress } from "./hex.ts";
import type { Activation, BlobSchedule, ChainForks, EthereumFork } from "./rules.ts";

const BLOBS: Partial<Record<EthereumFork, BlobSchedule>> = {
  cancun: { target: 3n, max: 6n, updateFraction: 3_338_477n },
  prague: { target: 6n, max: 9n, updateFraction: 5_007_716n },
  osaka: { target: 6n, max: 9n, updateFraction: 5_007_716n },
  bpo1: { target: 10n, max: 15n, updateFraction: 8_346_193n },
  bpo2: { target: 14n, max: 21n, updateFraction: 11_684_671n },
};

const blocks = (forks: readonly (readonly [EthereumFork, bigint])[]): Activation[] =>
  forks.map(([fork, block]) => ({ fork, block }));
const times = (forks: readonly (readonly [EthereumFork, bigint])[]): Activation[] =>
  forks.map(([fork, timestamp]) => ({ fork, timestamp }));

const MAINNET = [
  ...blocks([
    ["chainstart", 0n],
    ["homestead", 1_150_000n],
    ["tangerineWhistle", 2_463_000n],
    ["spuriousDragon", 2_675_000n],
    ["byzantium", 4_370_000n],
    ["petersburg", 7_280_000n],
    ["istanbul", 9_069_000n],
    ["berlin", 12_244_000n],
    ["london", 12_965_000n],
    ["paris", 15_537_394n],
  ]),
  ...times([
    ["shanghai", 1_681_338_455n],
    ["cancun", 1_710_338_135n],
    ["prague", 1_746_612_311n],
    ["osaka", 1_764_798_551n],
    ["bpo1", 1_765_290_071n],
    ["bpo2", 1_767_747_671n],
  ]),
];
const SEPOLIA = [
  ...blocks([
    ["london", 0n],
    ["paris", 1_735_371n],
  ]),
  ...times([
    ["shanghai", 1_677_557_088n],
    ["cancun", 1_706_655_072n],
    ["prague", 1_741_159_776n],
    ["osaka", 1_760_427_360n],
    ["bpo1", 1_761_017_184n],
    ["bpo2", 1_761_607_008n],
  ]),
];
const HOODI = [
  ...blocks([["paris", 0n]]),
  ...times([
    ["cancun", 0n],
    ["prague", 1_742_999_832n],
    ["osaka", 1_761_677_592n],
    ["bpo1", 1_762_365_720n],
    ["bpo2", 1_762_955_544n],
  ]),
];

const KNOWN = new Map([
  [1n, MAINNET],
  [11_155_111n, SEPOLIA],
  [560_048n, HOODI],
]);

const MAINNET_DEPOSITS = "0x00000000219ab540356cbb839cbe05303d7705fa";

/** Public networks; undefined for any other chain. */
export const ethereumForks = (chainId: bigint): ChainForks | undefined => {
  const activations = KNOWN.get(chainId);
  if (activations === undefined) return undefined;
  return { chainId, activations, blobs: BLOBS, ...(chainId === 1n ? { depositContract: MAINNET_DEPOSITS } : {}) };
};

/** A chain that follows one fork from its first block: development chains. */
export const fixedForks = (chainId: bigint, fork: EthereumFork): ChainForks => ({
  chainId,
  activations: [{ fork }],
  blobs: BLOBS,
});

/** The `config` of a genesis file in geth's form. */
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
const GENESIS_TIMES: readonly (readonly [EthereumFork, string])[] = [
  ["shanghai", "shanghaiTime"],
  ["cancun", "cancunTime"],
  ["prague", "pragueTime"],
  ["osaka", "osakaTime"],
  ["bpo1", "bpo1Time"],
  ["bpo2", "bpo2Time"],
];

export const genesisForks = (config: GenesisConfig): ChainForks => {
  const pick = (table: readonly (readonly [EthereumFork, string])[]) =>
    table.flatMap(([fork, name]) => {
      const value = config[name];
      return typeof value === "number" ? [[fork, BigInt(value)] as const] : [];
    });
  const { depositContractAddress } = config;
  return {
    chainId: BigInt(config.chainId),
    activations: [...blocks([["chainstart", 0n], ...pick(GENESIS_BLOCKS)]), ...times(pick(GENESIS_TIMES))],
    blobs: { ...BLOBS, ...parseBlobSchedule(config.blobSchedule) },
    ...(isAddress(depositContractAddress) ? { depositContract: depositContractAddress } : {}),
  };
};

const parseBlobSchedule = (value: unknown): Partial<Record<EthereumFork, BlobSchedule>> => {
  const schedules: Partial<Record<EthereumFork, BlobSchedule>> = {};
  if (typeof value !== "object" || value === null) return schedules;
  for (const [fork, entry] of Object.entries(value)) {
    const { target, max, baseFeeUpdateFraction } = entry as Record<string, number>;
    if (target === undefined || max === undefined || baseFeeUpdateFraction === undefined) continue;
    schedules[fork as EthereumFork] = {
      target: BigInt(target),
      max: BigInt(max),
      updateFraction: BigInt(baseFeeUpdateFraction),
    };
  }
  return schedules;
};
