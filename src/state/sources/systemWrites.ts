import type { Address } from "../../ethereum/hex.ts";
import { forgetSlots, type MutableAccounts, writesOf } from "./mutableWrites.ts";

/** Contracts whose storage a block writes outside its transactions, in any block and also before their fork. */
const SYSTEM_CONTRACTS: readonly Address[] = [
  /** EIP-4788 */
  "0x000f3df6d732807ef1319fb7b8bb8522d0beac02",
  /** EIP-2935 */
  "0x0000f90827f1c53a10cb7a02335b175320002935",
  /** EIP-7002 */
  "0x00000961ef480eb55e80d19ad83579a64c007002",
  /** EIP-7251 */
  "0x0000bbddc7ce488642fb579f8b00f3a590007251",
  /** EIP-8282 */
  "0x0000bff46984e3725691fa540a8c7589300d8282",
  "0x000064d678505ad48f8ccb093bc65613800e8282",
];

/** Accounts of the OP stack that collect fees. Other chains have nothing at these addresses. */
const FEE_VAULTS: readonly Address[] = [
  "0x4200000000000000000000000000000000000011",
  "0x4200000000000000000000000000000000000019",
  "0x420000000000000000000000000000000000001a",
  "0x420000000000000000000000000000000000001b",
];

/**
 * Marks as unknown what every block may write after or between its transactions.
 * `contracts`: system contracts of the chain besides those that all chains share.
 */
export const markSystemWrites = (accounts: MutableAccounts, contracts: readonly Address[]): void => {
  for (const contract of [...SYSTEM_CONTRACTS, ...contracts]) {
    forgetSlots(writesOf(accounts, contract));
  }
  for (const vault of FEE_VAULTS) {
    writesOf(accounts, vault).balance = "unknown";
  }
};
