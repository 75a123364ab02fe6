import { larger } from "./bigintOrder.ts";
import { ethereumForks, fixedForks, genesisForks } from "./ethereumForks.ts";
import { createOpForks, opForks } from "./opForks.ts";
import { type ChainForks, type EthereumFork, OP_FORKS, type OpFork } from "./rules.ts";

/** Returns the forks of a public chain that forebay can execute. Calls of any other chain (`undefined`) are forwarded. */
export const chainForks = (chainId: bigint): ChainForks | undefined => ethereumForks(chainId) ?? opForks(chainId);

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null;

const isOpFork = (fork: EthereumFork | OpFork): fork is OpFork => OP_FORKS.some((name) => name === fork);

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
