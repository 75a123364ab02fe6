import { readFileSync } from "node:fs";
import { chainForks } from "./chain/chainForks.ts";
import { fixedForks, genesisForks } from "./chain/ethereumForks.ts";
import { createOpForks } from "./chain/opForks.ts";
import { type ChainForks, type EthereumFork, OP_FORKS, type OpFork } from "./chain/rules.ts";

export type ForksOption = "auto" | "none" | EthereumFork | OpFork | { readonly genesis: string };

const isOpFork = (fork: EthereumFork | OpFork): fork is OpFork => OP_FORKS.some((known) => known === fork);

/** All forks up to this one from the first block on. */
const opUpTo = (chainId: bigint, fork: OpFork): ChainForks => {
  const held = OP_FORKS.slice(1, OP_FORKS.indexOf(fork) + 1);
  return createOpForks(chainId, Object.fromEntries(held.map((name) => [name, 0n])));
};

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null;

const readGenesis = (file: string): ChainForks => {
  const genesis: unknown = JSON.parse(readFileSync(file, "utf8"));
  if (!isRecord(genesis) || !isRecord(genesis.config) || typeof genesis.config.chainId !== "number") {
    throw new Error(`${file} is no genesis file: it has no config.chainId`);
  }
  return genesisForks({ ...genesis.config, chainId: genesis.config.chainId });
};

/** The first call of an L1-attributes deposit names the fork: flashblocks.md 3.2. Older ones do not tell enough. */
const BY_SELECTOR: ReadonlyMap<string, OpFork> = new Map([
  ["0x098999be", "isthmus"],
  ["0x3db6be2b", "jovian"],
]);

/** What the newest block of an OP-stack chain shows of its rules. */
const shownBy = (block: unknown): OpFork | undefined => {
  if (!isRecord(block) || !Array.isArray(block.transactions)) return undefined;
  const [first]: readonly unknown[] = block.transactions;
  if (!isRecord(first) || first.type !== "0x7e") return undefined;
  return BY_SELECTOR.get(String(first.input).slice(0, 10));
};

/**
 * The rules that hold on a chain: configured, known by its id, or shown by its newest block. Undefined: nothing is executed here,
 * since wrong rules give wrong answers.
 */
export const findForks = async (
  option: ForksOption,
  chainId: bigint,
  ask: (method: string, params: readonly unknown[]) => Promise<unknown>,
): Promise<ChainForks | undefined> => {
  if (option === "none") return undefined;
  if (typeof option === "object") return readGenesis(option.genesis);
  if (option !== "auto") return isOpFork(option) ? opUpTo(chainId, option) : fixedForks(chainId, option);
  const known = chainForks(chainId);
  if (known) return known;
  const shown = shownBy(await ask("eth_getBlockByNumber", ["latest", true]));
  return shown && opUpTo(chainId, shown);
};
