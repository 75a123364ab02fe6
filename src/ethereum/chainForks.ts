import { ethereumForks } from "./ethereumForks.ts";
import { opForks } from "./opForks.ts";
import type { ChainForks } from "./rules.ts";

/** The forks of a public chain that can be executed here; undefined for any other, whose calls go to its nodes. */
export const chainForks = (chainId: bigint): ChainForks | undefined => ethereumForks(chainId) ?? opForks(chainId);
