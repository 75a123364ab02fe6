import { type EthereumFork, OP_FORKS, type OpFork, type Rules, type RulesSchedule } from "./rules.ts";

/** Seconds from which a fork holds; one that is missing does not come. */
export type OpForkTimes = Partial<Record<OpFork, bigint>>;

const SUPERCHAIN: OpForkTimes = {
  regolith: 0n,
  canyon: 1_704_992_401n,
  ecotone: 1_710_374_401n,
  fjord: 1_720_627_201n,
  granite: 1_726_070_401n,
  holocene: 1_736_445_601n,
  isthmus: 1_746_806_401n,
  jovian: 1_764_691_201n,
};
const SUPERCHAIN_SEPOLIA: OpForkTimes = {
  regolith: 0n,
  canyon: 1_699_981_200n,
  ecotone: 1_708_534_800n,
  fjord: 1_716_998_400n,
  granite: 1_723_478_400n,
  holocene: 1_732_633_200n,
  isthmus: 1_744_905_600n,
  jovian: 1_763_568_001n,
};

const KNOWN = new Map<bigint, OpForkTimes>([
  [10n, { ...SUPERCHAIN, karst: 1_783_526_401n }],
  // Azul, 2026-05-28 18:00 UTC.
  [8453n, { ...SUPERCHAIN, karst: 1_779_991_200n }],
  [84_532n, { ...SUPERCHAIN_SEPOLIA, karst: 1_776_708_000n }],
]);

const ETHEREUM_OF: Record<OpFork, EthereumFork> = {
  bedrock: "paris",
  regolith: "paris",
  canyon: "shanghai",
  ecotone: "cancun",
  fjord: "cancun",
  granite: "cancun",
  holocene: "cancun",
  isthmus: "prague",
  jovian: "prague",
  karst: "osaka",
};

export const createOpSchedule = (chainId: bigint, times: OpForkTimes): RulesSchedule => ({
  chainId,
  at: (_number, timestamp): Rules => {
    const isReached = (fork: OpFork) => {
      const time = times[fork];
      return time !== undefined && timestamp >= time;
    };
    const op = OP_FORKS.findLast(isReached) ?? "bedrock";
    return { chainId, op, fork: ETHEREUM_OF[op] };
  },
});

/** OP Mainnet, Base and Base Sepolia; undefined for any other chain. */
export const opSchedule = (chainId: bigint): RulesSchedule | undefined => {
  const times = KNOWN.get(chainId);
  return times === undefined ? undefined : createOpSchedule(chainId, times);
};
