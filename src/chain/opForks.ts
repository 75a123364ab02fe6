import type { ChainForks, OpForkTimes } from "./rules.ts";

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

export const createOpForks = (chainId: bigint, op: OpForkTimes): ChainForks => ({
  chainId,
  activations: [],
  blobs: {},
  op,
});

/** OP Mainnet, Base and Base Sepolia; undefined for any other chain. */
export const opForks = (chainId: bigint): ChainForks | undefined => {
  const times = KNOWN.get(chainId);
  return times === undefined ? undefined : createOpForks(chainId, times);
};

/** Contracts in Base's nodes themselves (B20 since Beryl): addresses, and beginnings of addresses. */
const BASE_NATIVES = [
  "0xb20f000000000000000000000000000000000000",
  "0x8453000000000000000000000000000000000001",
  "0x8453000000000000000000000000000000000002",
  "0xb200",
  "0xb201",
];

/** Addresses, or beginnings of addresses, whose code is native on that chain: what touches them cannot be run here. */
export const nativeContracts = (chainId: bigint): readonly string[] =>
  chainId === 8453n || chainId === 84_532n ? BASE_NATIVES : [];
