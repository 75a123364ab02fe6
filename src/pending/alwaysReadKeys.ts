import type { StateKeys } from "../core/stateReader.ts";
import type { Address, Hash } from "../ethereum/hex.ts";
import { BASE_FEE_VAULT, L1_BLOCK, L1_FEE_VAULT, OPERATOR_FEE_VAULT } from "../ethereum/opFees.ts";
import type { Rules } from "../ethereum/rules.ts";
import { BEACON_ROOTS, BLOCK_HASHES, SYSTEM } from "../evm/systemCalls.ts";
import type { FlashblockJob } from "./execution.ts";

const OP_ACCOUNTS: readonly Address[] = [L1_BLOCK, BASE_FEE_VAULT, L1_FEE_VAULT, OPERATOR_FEE_VAULT];
/** Slots of the L1Block contract (Jovian). */
const L1_BLOCK_SLOTS = 9;

/**
 * Returns the keys that every flashblock reads: accounts of system calls and fees, L1 attributes, and the feed's access list.
 * They are fetched before its execution.
 */
export const alwaysReadKeys = ({ environment, index, accessList }: FlashblockJob, rules: Rules): StateKeys => ({
  accounts: [
    environment.feeRecipient,
    ...(index === 0 ? [SYSTEM, BEACON_ROOTS, BLOCK_HASHES] : []),
    ...(rules.op === undefined ? [] : OP_ACCOUNTS),
    ...accessList.map(({ address }) => address),
  ],
  slots: [
    ...(rules.op === undefined ? [] : L1_SLOTS),
    ...accessList.flatMap(({ address, slots }) => slots.map((slot) => [address, slot] as const)),
  ],
  blockHashes: [],
});

const L1_SLOTS = Array.from({ length: L1_BLOCK_SLOTS }, (_, slot): readonly [Address, Hash] => [
  L1_BLOCK,
  `0x${slot.toString(16).padStart(64, "0")}`,
]);
