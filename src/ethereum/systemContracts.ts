import type { Address } from "./hex.ts";

// Contracts that a block calls outside its transactions. Each has one address on all chains.

/** EIP-4788 */
export const BEACON_ROOTS: Address = "0x000f3df6d732807ef1319fb7b8bb8522d0beac02";
/** EIP-2935 */
export const BLOCK_HASHES: Address = "0x0000f90827f1c53a10cb7a02335b175320002935";
/** EIP-7002 */
export const WITHDRAWAL_REQUESTS: Address = "0x00000961ef480eb55e80d19ad83579a64c007002";
/** EIP-7251 */
export const CONSOLIDATION_REQUESTS: Address = "0x0000bbddc7ce488642fb579f8b00f3a590007251";
/** EIP-8282 */
export const BUILDER_DEPOSITS: Address = "0x0000bff46984e3725691fa540a8c7589300d8282";
/** EIP-8282 */
export const BUILDER_EXITS: Address = "0x000064d678505ad48f8ccb093bc65613800e8282";

/** A block may write their storage outside its transactions, also before their fork. */
export const SYSTEM_CONTRACTS: readonly Address[] = [
  BEACON_ROOTS,
  BLOCK_HASHES,
  WITHDRAWAL_REQUESTS,
  CONSOLIDATION_REQUESTS,
  BUILDER_DEPOSITS,
  BUILDER_EXITS,
];
