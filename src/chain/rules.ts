/** Ethereum's forks that change execution, oldest first, as the library names them. */
export const ETHEREUM_FORKS = [
  "chainstart",
  "homestead",
  "tangerineWhistle",
  "spuriousDragon",
  "byzantium",
  "constantinople",
  "petersburg",
  "istanbul",
  "berlin",
  "london",
  "paris",
  "shanghai",
  "cancun",
  "prague",
  "osaka",
  "bpo1",
  "bpo2",
] as const;
export type EthereumFork = (typeof ETHEREUM_FORKS)[number];

/** The OP stack's forks, oldest first. Base's Azul is Karst by another name. */
export const OP_FORKS = [
  "bedrock",
  "regolith",
  "canyon",
  "ecotone",
  "fjord",
  "granite",
  "holocene",
  "isthmus",
  "jovian",
  "karst",
] as const;
export type OpFork = (typeof OP_FORKS)[number];

/** EIP-7840 */
export interface BlobSchedule {
  readonly target: bigint;
  readonly max: bigint;
  readonly updateFraction: bigint;
}

/** What holds for one block. */
export interface Rules {
  readonly chainId: bigint;
  readonly fork: EthereumFork;
  readonly op?: OpFork;
  readonly blobs?: BlobSchedule;
}

export const isForkActive = (rules: Rules, fork: EthereumFork): boolean =>
  ETHEREUM_FORKS.indexOf(rules.fork) >= ETHEREUM_FORKS.indexOf(fork);

export const isOpForkActive = (rules: Rules, fork: OpFork): boolean =>
  rules.op !== undefined && OP_FORKS.indexOf(rules.op) >= OP_FORKS.indexOf(fork);

/** Which rules hold when. */
export interface RulesSchedule {
  readonly chainId: bigint;
  at(number: bigint, timestamp: bigint): Rules;
}
