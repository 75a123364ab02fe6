import { readFileSync } from "node:fs";
import { chainForks } from "../ethereum/chainForks.ts";
import {
  CLZ_CODE,
  detectForkFromBlock,
  hasClz,
  hasNewestForks,
  namedForks,
  opForksUpTo,
  parseGenesisForks,
  withShownForks,
} from "../ethereum/detectForks.ts";
import type { ChainForks, EthereumFork, OpFork } from "../ethereum/rules.ts";

export type ForksOption = "auto" | "none" | EthereumFork | OpFork | { readonly genesis: string };

type CallNode = (method: string, params: readonly unknown[]) => Promise<unknown>;

const readGenesis = (file: string): ChainForks => {
  const forks = parseGenesisForks(JSON.parse(readFileSync(file, "utf8")));
  if (forks === undefined) {
    throw new Error(`${file} is no genesis file: it has no config.chainId`);
  }
  return forks;
};

/** Returns the newest fork that a node shows. Karst does not change blocks, but it adds an opcode. */
const readNewestFork = async (callNode: CallNode): Promise<OpFork | undefined> => {
  const shown = detectForkFromBlock(await callNode("eth_getBlockByNumber", ["latest", true]));
  if (shown !== "jovian") {
    return shown;
  }
  const result = await callNode("eth_call", [{ input: CLZ_CODE }, "latest"]).catch(() => undefined);
  return hasClz(result) ? "karst" : "jovian";
};

export interface ResolvedForks {
  readonly forks: ChainForks;
  /** Whether `forks` has the chain's own fork times. */
  readonly hasTimes: boolean;
}

/**
 * Returns the rules of a chain: configured, known by its id, or shown by its newest block.
 * Returns undefined if they are unknown. Nothing is executed then, because wrong rules give wrong results.
 */
export const resolveForks = async (
  option: ForksOption,
  chainId: bigint,
  callNode: CallNode,
): Promise<ResolvedForks | undefined> => {
  if (option === "none") {
    return undefined;
  }
  if (typeof option === "object") {
    return { forks: readGenesis(option.genesis), hasTimes: true };
  }
  if (option !== "auto") {
    return { forks: namedForks(chainId, option), hasTimes: false };
  }
  const known = chainForks(chainId);
  if (known !== undefined && hasNewestForks(known)) {
    return { forks: known, hasTimes: true };
  }
  const shown = await readNewestFork(callNode);
  if (known !== undefined) {
    return { forks: withShownForks(known, shown), hasTimes: true };
  }
  return shown && { forks: opForksUpTo(chainId, shown), hasTimes: false };
};
