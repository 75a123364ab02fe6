import { readFileSync } from "node:fs";
import { larger } from "../ethereum/bigintOrder.ts";
import { chainForks } from "../ethereum/chainForks.ts";
import { fixedForks, genesisForks } from "../ethereum/ethereumForks.ts";
import { createOpForks } from "../ethereum/opForks.ts";
import { type ChainForks, type EthereumFork, OP_FORKS, type OpFork } from "../ethereum/rules.ts";

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
const detectForkFromBlock = (block: unknown): OpFork | undefined => {
  if (!isRecord(block) || !Array.isArray(block.transactions)) return undefined;
  const [first]: readonly unknown[] = block.transactions;
  if (!isRecord(first) || first.type !== "0x7e") return undefined;
  return BY_SELECTOR.get(String(first.input).slice(0, 10));
};

type Ask = (method: string, params: readonly unknown[]) => Promise<unknown>;

/** Returns CLZ(1), which is 255 where the opcode is known: Osaka (EIP-7939). */
const CLZ_CODE = "0x60011e5f5260205ff3";

/** The newest fork that a node shows. Karst changes nothing in blocks, but it brings an opcode. */
const readNewestFork = async (ask: Ask): Promise<OpFork | undefined> => {
  const shown = detectForkFromBlock(await ask("eth_getBlockByNumber", ["latest", true]));
  if (shown !== "jovian") return shown;
  const result = await ask("eth_call", [{ input: CLZ_CODE }, "latest"]).catch(() => undefined);
  return typeof result === "string" && result.endsWith("ff") ? "karst" : "jovian";
};

/** A public chain whose newest forks have no time in the table: forks that its node shows are active since the last known one. */
const withShownForks = (known: ChainForks, shown: OpFork | undefined): ChainForks => {
  if (known.op === undefined || shown === undefined) return known;
  const newest = Object.values(known.op).reduce(larger, 0n);
  const upTo = opUpTo(known.chainId, shown).op ?? {};
  const later = Object.keys(upTo).map((fork) => [fork, newest] as const);
  return { ...known, op: { ...Object.fromEntries(later), ...known.op } };
};

/** Azul and Karst end the list of forks that the table knows. */
const isUpToDate = ({ op }: ChainForks): boolean => op === undefined || op.azul !== undefined || op.karst !== undefined;

export interface FoundForks {
  readonly forks: ChainForks;
  /** Whether these are the chain's own fork times. */
  readonly hasTimes: boolean;
}

/**
 * The rules that hold on a chain: configured, known by its id, or shown by its newest block. Undefined: nothing is executed here,
 * since wrong rules give wrong answers.
 */
export const resolveForks = async (option: ForksOption, chainId: bigint, ask: Ask): Promise<FoundForks | undefined> => {
  if (option === "none") return undefined;
  if (typeof option === "object") return { forks: readGenesis(option.genesis), hasTimes: true };
  if (option !== "auto") {
    return { forks: isOpFork(option) ? opUpTo(chainId, option) : fixedForks(chainId, option), hasTimes: false };
  }
  const known = chainForks(chainId);
  if (known !== undefined && isUpToDate(known)) return { forks: known, hasTimes: true };
  const shown = await readNewestFork(ask);
  if (known !== undefined) return { forks: withShownForks(known, shown), hasTimes: true };
  return shown && { forks: opUpTo(chainId, shown), hasTimes: false };
};
