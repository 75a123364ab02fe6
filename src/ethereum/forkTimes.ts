import type { EthereumFork, OpFork } from "./rules.ts";

export interface EthereumForkTimes {
  readonly chainId: number;
  readonly name: string;
  readonly source: string;
  /** Numbers of the first block of each fork before the timestamps. */
  readonly blocks: Partial<Record<EthereumFork, number>>;
  /** Seconds. */
  readonly times: Partial<Record<EthereumFork, number>>;
  /** EIP-6110 */
  readonly depositContract: `0x${string}`;
  /** Block numbers of forks in the chain's fork id (EIP-2124), except those of the genesis. */
  readonly forkIdBlocks: readonly number[];
}

export interface OpForkTimeRow {
  readonly chainId: number;
  readonly name: string;
  readonly source: string;
  /** Seconds. A fork without a time is not announced. */
  readonly times: Partial<Record<OpFork, number>>;
  /** The chain changed its EVM in ways that forebay does not implement. All calls are forwarded. */
  readonly ownRules?: true;
  /** Base: the fork that added B20 tokens as native code. */
  readonly beryl?: number;
}

const GETH = "ethereum/go-ethereum, params";
const REGISTRY = "ethereum-optimism/superchain-registry 8336d2a (2026-08-04)";
/** Release notes of op-reth v2.10.0 and op-node v1.21.0. */
const LAGOON = `${REGISTRY}; Lagoon: op-reth v2.10.0`;
const BASE = "base/base chain specifications, November 2026; Beryl: the day, from 00:00 UTC";

// biome-ignore format: one row per chain
export const ETHEREUM_FORK_TIMES: readonly EthereumForkTimes[] = [
  {
    chainId: 1, name: "Ethereum", source: GETH,
    blocks: {
      chainstart: 0, homestead: 1_150_000, tangerineWhistle: 2_463_000, spuriousDragon: 2_675_000, byzantium: 4_370_000,
      petersburg: 7_280_000, istanbul: 9_069_000, berlin: 12_244_000, london: 12_965_000, paris: 15_537_394,
    },
    times: {
      shanghai: 1_681_338_455, cancun: 1_710_338_135, prague: 1_746_612_311, osaka: 1_764_798_551, bpo1: 1_765_290_071,
      bpo2: 1_767_747_671,
    },
    depositContract: "0x00000000219ab540356cbb839cbe05303d7705fa",
    forkIdBlocks: [
      1_150_000, 1_920_000, 2_463_000, 2_675_000, 4_370_000, 7_280_000, 9_069_000, 9_200_000, 12_244_000, 12_965_000,
      13_773_000, 15_050_000,
    ],
  },
  {
    chainId: 11_155_111, name: "Sepolia", source: GETH,
    blocks: { london: 0, paris: 1_735_371 },
    times: {
      shanghai: 1_677_557_088, cancun: 1_706_655_072, prague: 1_741_159_776, osaka: 1_760_427_360, bpo1: 1_761_017_184,
      bpo2: 1_761_607_008, amsterdam: 1_791_294_816,
    },
    depositContract: "0x7f02c3e3c98b133055b8b348b2ac625669ed295d",
    forkIdBlocks: [1_735_371],
  },
  {
    chainId: 560_048, name: "Hoodi", source: GETH,
    blocks: { paris: 0 },
    times: { cancun: 0, prague: 1_742_999_832, osaka: 1_761_677_592, bpo1: 1_762_365_720, bpo2: 1_762_955_544 },
    depositContract: "0x00000000219ab540356cbb839cbe05303d7705fa",
    forkIdBlocks: [],
  },
  {
    chainId: 17_000, name: "Holesky", source: GETH,
    blocks: { paris: 0 },
    times: {
      shanghai: 1_696_000_704, cancun: 1_707_305_664, prague: 1_740_434_112, osaka: 1_759_308_480, bpo1: 1_759_800_000,
      bpo2: 1_760_389_824,
    },
    depositContract: "0x4242424242424242424242424242424242424242",
    forkIdBlocks: [],
  },
];

/** Chains of the OP stack, by chain id. Regolith is active from the first block of each. */
// biome-ignore format: one row per chain
export const OP_FORK_TIMES: readonly OpForkTimeRow[] = [
  { chainId: 10, name: "OP Mainnet", source: LAGOON, times: { canyon: 1_704_992_401, ecotone: 1_710_374_401, fjord: 1_720_627_201, granite: 1_726_070_401, holocene: 1_736_445_601, isthmus: 1_746_806_401, jovian: 1_764_691_201, karst: 1_783_526_401, lagoon: 1_799_683_201 } },
  { chainId: 130, name: "Unichain", source: LAGOON, times: { canyon: 0, ecotone: 0, fjord: 0, granite: 0, holocene: 1_736_445_601, isthmus: 1_746_806_401, jovian: 1_764_691_201, karst: 1_783_526_401, lagoon: 1_799_683_201 } },
  { chainId: 177, name: "HashKey Chain", source: REGISTRY, times: { canyon: 0, ecotone: 0, fjord: 0, granite: 0 } },
  { chainId: 183, name: "Ethernity", source: REGISTRY, times: { canyon: 1_704_992_401, ecotone: 1_710_374_401, fjord: 1_720_627_201, granite: 1_726_070_401, holocene: 1_736_445_601, isthmus: 1_746_806_401, jovian: 1_764_691_201, karst: 1_783_526_401 } },
  { chainId: 185, name: "Mint Mainnet", source: REGISTRY, times: { canyon: 0, ecotone: 0, fjord: 1_720_627_201, granite: 1_726_070_401, holocene: 1_736_445_601, isthmus: 1_746_806_401 } },
  { chainId: 252, name: "Fraxtal", source: REGISTRY, times: { canyon: 0, ecotone: 1_717_009_201, fjord: 1_733_947_201, granite: 1_738_958_401 } },
  { chainId: 254, name: "Swan Chain Mainnet", source: REGISTRY, times: { canyon: 0 } },
  { chainId: 288, name: "Boba Mainnet", source: REGISTRY, times: { canyon: 1_713_302_879, ecotone: 1_713_302_880, fjord: 1_725_951_600, granite: 1_729_753_200, holocene: 1_738_785_600 } },
  { chainId: 291, name: "Orderly Mainnet", source: REGISTRY, times: { canyon: 1_704_992_401, ecotone: 1_710_374_401, fjord: 1_720_627_201, granite: 1_726_070_401, holocene: 1_736_445_601, isthmus: 1_746_806_401 } },
  { chainId: 360, name: "Shape", source: REGISTRY, times: { canyon: 0, ecotone: 0, fjord: 0, granite: 1_727_370_000 } },
  { chainId: 480, name: "World Chain", source: `${REGISTRY}; Karst: World Chain, November 2026`, times: { canyon: 0, ecotone: 0, fjord: 1_721_826_000, granite: 1_727_780_400, holocene: 1_738_238_400, isthmus: 1_764_072_000, jovian: 1_777_593_600, karst: 1_789_992_000 } },
  { chainId: 624, name: "Binary Mainnet", source: REGISTRY, times: { canyon: 0, ecotone: 0, fjord: 1_725_536_344, granite: 1_726_070_401, holocene: 1_736_445_601, isthmus: 1_746_806_401, jovian: 1_764_691_201, karst: 1_783_526_401 } },
  { chainId: 625, name: "Binary Sepolia", source: REGISTRY, times: { canyon: 0, ecotone: 0, fjord: 1_723_204_838, granite: 1_723_545_055 } },
  { chainId: 690, name: "Redstone", source: REGISTRY, times: { canyon: 0, ecotone: 0 } },
  { chainId: 863, name: "Radius testnet", source: REGISTRY, times: { canyon: 0, ecotone: 0, fjord: 0, granite: 0, holocene: 0 } },
  { chainId: 919, name: "Mode Testnet", source: REGISTRY, times: { canyon: 1_703_203_200, ecotone: 1_708_534_800, fjord: 1_716_998_400, granite: 1_723_478_400, holocene: 1_732_633_200, isthmus: 1_744_905_600, jovian: 1_763_568_001, karst: 1_781_712_001 } },
  { chainId: 957, name: "Lyra Chain", source: REGISTRY, times: { canyon: 1_704_992_401, ecotone: 1_710_374_401, fjord: 1_720_627_201, granite: 1_726_070_401, holocene: 1_736_445_601, isthmus: 1_746_806_401 } },
  { chainId: 1135, name: "Lisk", source: REGISTRY, times: { canyon: 1_704_992_401, ecotone: 1_710_374_401, fjord: 1_720_627_201, granite: 1_726_070_401, holocene: 1_736_445_601, isthmus: 1_746_806_401, jovian: 1_764_691_201, karst: 1_783_526_401 } },
  { chainId: 1301, name: "Unichain Sepolia Testnet", source: LAGOON, times: { canyon: 0, ecotone: 0, fjord: 0, granite: 0, holocene: 1_734_559_200, isthmus: 1_744_905_600, jovian: 1_763_568_001, karst: 1_781_712_001, lagoon: 1_796_918_401 } },
  { chainId: 1740, name: "Metal L2 Testnet", source: REGISTRY, times: { canyon: 1_708_129_622, ecotone: 1_708_534_800, fjord: 1_716_998_400, granite: 1_723_478_400, holocene: 1_732_633_200, isthmus: 1_744_905_600, jovian: 1_763_568_001, karst: 1_781_712_001 } },
  { chainId: 1750, name: "Metal L2", source: REGISTRY, times: { canyon: 0, ecotone: 0, fjord: 1_720_627_201, granite: 1_726_070_401, holocene: 1_736_445_601, isthmus: 1_746_806_401, jovian: 1_764_691_201, karst: 1_783_526_401 } },
  { chainId: 1868, name: "Soneium", source: LAGOON, times: { canyon: 0, ecotone: 0, fjord: 0, granite: 0, holocene: 1_738_573_200, isthmus: 1_746_806_401, jovian: 1_764_691_201, karst: 1_783_526_401, lagoon: 1_799_683_201 } },
  { chainId: 1946, name: "Soneium Testnet Minato", source: LAGOON, times: { canyon: 0, ecotone: 0, fjord: 1_730_106_000, granite: 1_730_106_000, holocene: 1_734_685_200, isthmus: 1_744_905_600, jovian: 1_763_568_001, karst: 1_781_712_001, lagoon: 1_796_918_401 } },
  { chainId: 4202, name: "Lisk Sepolia Testnet", source: REGISTRY, times: { canyon: 1_705_312_994, ecotone: 1_708_534_800, fjord: 1_716_998_400, granite: 1_723_478_400, holocene: 1_732_633_200, isthmus: 1_744_905_600, jovian: 1_763_568_001, karst: 1_781_712_001 } },
  { chainId: 4801, name: "World Chain Sepolia Testnet", source: `${REGISTRY}; Karst: World Chain, November 2026`, times: { canyon: 0, ecotone: 0, fjord: 1_721_739_600, granite: 1_726_570_800, holocene: 1_737_633_600, isthmus: 1_761_825_600, jovian: 1_777_161_600, karst: 1_788_868_800 } },
  { chainId: 5330, name: "Superseed", source: REGISTRY, times: { canyon: 0, ecotone: 0, fjord: 0, granite: 1_726_185_601, holocene: 1_736_445_601, isthmus: 1_746_806_401 } },
  { chainId: 5371, name: "Settlus Mainnet", source: REGISTRY, times: { canyon: 0, ecotone: 0, fjord: 0, granite: 0, holocene: 0 } },
  { chainId: 5373, name: "Settlus Sepolia", source: REGISTRY, times: { canyon: 0, ecotone: 0, fjord: 0, granite: 0, holocene: 0 } },
  { chainId: 6805, name: "RACE Mainnet", source: REGISTRY, times: { canyon: 0, ecotone: 0 } },
  { chainId: 6806, name: "RACE Testnet", source: REGISTRY, times: { canyon: 0, ecotone: 0, fjord: 1_749_686_400, granite: 1_749_686_400, holocene: 1_749_772_800 } },
  { chainId: 7560, name: "Cyber Mainnet", source: REGISTRY, times: { canyon: 0, ecotone: 0, fjord: 1_767_754_800, granite: 1_767_841_200, holocene: 1_767_927_600 } },
  { chainId: 8008, name: "Polynomial", source: REGISTRY, times: { canyon: 0, ecotone: 0, fjord: 1_720_627_201, granite: 1_726_070_401, holocene: 1_736_445_601, isthmus: 1_746_806_401 } },
  { chainId: 8453, name: "Base", source: BASE, times: { canyon: 1_704_992_401, ecotone: 1_710_374_401, fjord: 1_720_627_201, granite: 1_726_070_401, holocene: 1_736_445_601, isthmus: 1_746_806_401, jovian: 1_764_691_201, azul: 1_779_991_200 }, beryl: 1_782_345_600 },
  { chainId: 11_011, name: "Shape Sepolia Testnet", source: REGISTRY, times: { canyon: 0, ecotone: 0, fjord: 1_721_732_400, granite: 1_727_197_200 } },
  { chainId: 16_481, name: "Pivotal Sepolia", source: REGISTRY, times: { canyon: 0, ecotone: 0 } },
  { chainId: 28_882, name: "Boba Sepolia Testnet", source: REGISTRY, times: { canyon: 1_705_600_788, ecotone: 1_709_078_400, fjord: 1_722_297_600, granite: 1_726_470_000, holocene: 1_736_150_400 } },
  { chainId: 33_979, name: "Funki", source: REGISTRY, times: { canyon: 0, ecotone: 0, fjord: 0, granite: 1_767_582_000, holocene: 1_767_668_400 } },
  { chainId: 34_443, name: "Mode", source: REGISTRY, times: { canyon: 1_704_992_401, ecotone: 1_710_374_401, fjord: 1_720_627_201, granite: 1_726_070_401, holocene: 1_736_445_601, isthmus: 1_746_806_401, jovian: 1_764_691_201, karst: 1_783_526_401 } },
  { chainId: 42_220, name: "Celo", source: REGISTRY, times: { canyon: 0, ecotone: 0, fjord: 0, granite: 0, holocene: 1_752_073_200, isthmus: 1_752_073_200 }, ownRules: true },
  { chainId: 57_073, name: "Ink", source: LAGOON, times: { canyon: 0, ecotone: 0, fjord: 0, granite: 0, holocene: 1_742_396_400, isthmus: 1_746_806_401, jovian: 1_764_691_201, karst: 1_783_526_401, lagoon: 1_799_683_201 } },
  { chainId: 60_808, name: "BOB", source: REGISTRY, times: { canyon: 0, ecotone: 0, fjord: 1_720_627_201, granite: 1_726_070_401, holocene: 1_736_445_601, isthmus: 1_746_806_401 } },
  { chainId: 65_536, name: "Automata Mainnet", source: REGISTRY, times: { canyon: 0, ecotone: 0, fjord: 0 } },
  { chainId: 84_532, name: "Base Sepolia", source: BASE, times: { canyon: 1_699_981_200, ecotone: 1_708_534_800, fjord: 1_716_998_400, granite: 1_723_478_400, holocene: 1_732_633_200, isthmus: 1_744_905_600, jovian: 1_763_568_001, azul: 1_776_708_000 }, beryl: 1_781_740_800 },
  { chainId: 325_000, name: "Camp Network Testnet V2", source: REGISTRY, times: { canyon: 0, ecotone: 0, fjord: 0, granite: 1_723_478_400, holocene: 1_732_633_200 } },
  { chainId: 380_929, name: "Silent Data Mainnet", source: REGISTRY, times: { canyon: 0, ecotone: 0, fjord: 0, granite: 0, holocene: 0 } },
  { chainId: 763_373, name: "Ink Sepolia", source: LAGOON, times: { canyon: 1_699_981_200, ecotone: 1_708_534_800, fjord: 1_716_998_400, granite: 1_723_478_400, holocene: 1_732_633_200, isthmus: 1_744_905_600, jovian: 1_763_568_001, karst: 1_781_712_001, lagoon: 1_796_918_401 } },
  { chainId: 2_702_128, name: "Xterio Chain (ETH)", source: REGISTRY, times: { canyon: 0, ecotone: 0 } },
  { chainId: 3_397_901, name: "Funki Sepolia Testnet", source: REGISTRY, times: { canyon: 0, ecotone: 0 } },
  { chainId: 7_777_777, name: "Zora", source: REGISTRY, times: { canyon: 1_704_992_401, ecotone: 1_710_374_401, fjord: 1_720_627_201, granite: 1_726_070_401, holocene: 1_736_445_601, isthmus: 1_746_806_401, jovian: 1_764_691_201, karst: 1_783_526_401 } },
  { chainId: 7_849_306, name: "Ozean Poseidon Testnet", source: REGISTRY, times: { canyon: 0, ecotone: 0, fjord: 0 } },
  { chainId: 11_142_220, name: "Celo Sepolia Testnet", source: REGISTRY, times: { canyon: 0, ecotone: 0, fjord: 0, granite: 0, holocene: 0 }, ownRules: true },
  { chainId: 11_155_420, name: "OP Sepolia Testnet", source: LAGOON, times: { canyon: 1_699_981_200, ecotone: 1_708_534_800, fjord: 1_716_998_400, granite: 1_723_478_400, holocene: 1_732_633_200, isthmus: 1_744_905_600, jovian: 1_763_568_001, karst: 1_781_712_001, lagoon: 1_796_918_401 } },
  { chainId: 111_557_560, name: "Cyber Testnet", source: REGISTRY, times: { canyon: 0, ecotone: 0 } },
  { chainId: 420_130_015, name: "sepolia-devnet-2", source: REGISTRY, times: { canyon: 0, ecotone: 0, fjord: 0, granite: 0, holocene: 0, isthmus: 0, jovian: 0, karst: 0 } },
  { chainId: 999_999_999, name: "Zora Sepolia Testnet", source: REGISTRY, times: { canyon: 1_699_981_200, ecotone: 1_708_534_800, fjord: 1_716_998_400, granite: 1_723_478_400, holocene: 1_732_633_200, isthmus: 1_744_905_600, jovian: 1_763_568_001, karst: 1_781_712_001 } },
];
