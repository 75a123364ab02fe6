import { ethereumForks } from "./ethereumForks.ts";
import { opForks } from "./opForks.ts";
import type { ChainForks } from "./rules.ts";

/** Returns the forks of a public chain that forebay can execute. Calls of any other chain (`undefined`) are forwarded. */
export const chainForks = (chainId: bigint): ChainForks | undefined => ethereumForks(chainId) ?? opForks(chainId);
