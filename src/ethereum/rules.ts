/** Ethereum's forks that change execution, oldest first, with the names of ethereumjs. */
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
  "amsterdam",
] as const;
export type EthereumFork = (typeof ETHEREUM_FORKS)[number];

/**
 * The OP stack's forks, oldest first. Base has Azul instead of Karst: Osaka with the input limits of Jovian.
 * Lagoon changes the gas of a block (postExec.ts), and no rule inside the EVM.
 */
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
  "azul",
  "karst",
  "lagoon",
] as const;
export type OpFork = (typeof OP_FORKS)[number];

/** EIP-7840 */
export interface BlobSchedule {
  readonly target: bigint;
  readonly max: bigint;
  readonly updateFraction: bigint;
}

/** The rules of one block. */
export interface Rules {
  readonly chainId: bigint;
  readonly fork: EthereumFork;
  readonly op?: OpFork;
  readonly blobs?: BlobSchedule;
}

/** The start of a fork. If both fields are set, both conditions apply. */
export interface Activation {
  readonly fork: EthereumFork;
  readonly block?: bigint;
  readonly timestamp?: bigint;
}

/** Times of the forks, in seconds. A missing fork is not scheduled. */
export type OpForkTimes = Partial<Record<OpFork, bigint>>;

/** The forks of one chain. Plain data, sent between threads. */
export interface ChainForks {
  readonly chainId: bigint;
  /** Oldest first. */
  readonly activations: readonly Activation[];
  readonly blobs: Partial<Record<EthereumFork, BlobSchedule>>;
  /** Set on OP-stack chains. The other activations are ignored then. */
  readonly op?: OpForkTimes;
  /** EIP-6110 */
  readonly depositContract?: `0x${string}`;
  /** A node has shown which fork is the newest: it is neither configured nor in the table. */
  readonly isShown?: true;
  /** Time in seconds from which forebay does not know the rules of this chain. */
  readonly unknownFrom?: bigint;
  /** Block numbers in the chain's fork id (EIP-2124). Undefined: the id cannot be computed. */
  readonly forkIdBlocks?: readonly bigint[];
}

/** Forebay does not know the rules of a block. A node must execute it. */
export class UnknownRules extends Error {
  override readonly name = "UnknownRules";
}

export const areRulesKnown = ({ unknownFrom }: ChainForks, timestamp: bigint): boolean =>
  unknownFrom === undefined || timestamp < unknownFrom;

/** Returns the rules of a block. Throws UnknownRules. */
export const rulesAt = (forks: ChainForks, number: bigint, timestamp: bigint): Rules => {
  if (!areRulesKnown(forks, timestamp)) {
    throw new UnknownRules(`the rules of chain ${forks.chainId} at time ${timestamp} are not known`);
  }
  return newestRulesAt(forks, number, timestamp);
};

/** Returns the newest known rules for a block, also if its own rules are not known. */
export const newestRulesAt = (forks: ChainForks, number: bigint, timestamp: bigint): Rules => {
  const { chainId, op } = forks;
  if (op !== undefined) {
    return opRulesAt(chainId, op, timestamp);
  }
  const isReached = (activation: Activation) =>
    (activation.block === undefined || number >= activation.block) &&
    (activation.timestamp === undefined || timestamp >= activation.timestamp);
  const reached = forks.activations.filter(isReached);
  const fork = reached.at(-1)?.fork ?? "chainstart";
  // A fork without an own schedule keeps that of the fork before it.
  const blobs = reached.flatMap((activation) => forks.blobs[activation.fork] ?? []).at(-1);
  return { chainId, fork, ...(blobs === undefined ? {} : { blobs }) };
};

/** The fork of Ethereum that an OP fork includes. */
const ETHEREUM_FORK_OF: Record<OpFork, EthereumFork> = {
  bedrock: "paris",
  regolith: "paris",
  canyon: "shanghai",
  ecotone: "cancun",
  fjord: "cancun",
  granite: "cancun",
  holocene: "cancun",
  isthmus: "prague",
  jovian: "prague",
  azul: "osaka",
  karst: "osaka",
  lagoon: "osaka",
};

const opRulesAt = (chainId: bigint, times: OpForkTimes, timestamp: bigint): Rules => {
  const isReached = (fork: OpFork) => {
    const time = times[fork];
    return time !== undefined && timestamp >= time;
  };
  const op = OP_FORKS.findLast(isReached) ?? "bedrock";
  return { chainId, op, fork: ETHEREUM_FORK_OF[op] };
};

export const isForkActive = (rules: Rules, fork: EthereumFork): boolean =>
  ETHEREUM_FORKS.indexOf(rules.fork) >= ETHEREUM_FORKS.indexOf(fork);

/** Whether a chain has a time for Lagoon. Its 0x7D transactions are post-exec transactions, also before that time. */
export const hasLagoon = ({ op }: ChainForks): boolean => op?.lagoon !== undefined;

export const isOpForkActive = (rules: Rules, fork: OpFork): boolean =>
  rules.op !== undefined && OP_FORKS.indexOf(rules.op) >= OP_FORKS.indexOf(fork);
