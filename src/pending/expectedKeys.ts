import { LRUCache } from "lru-cache";
import type { StateKeys } from "../core/stateReader.ts";
import { type Address, formatData, formatQuantity, formatWord, type Hash } from "../ethereum/hex.ts";
import { BASE_FEE_VAULT, L1_BLOCK, L1_FEE_VAULT, OPERATOR_FEE_VAULT } from "../ethereum/opFees.ts";
import { createdAddress } from "../ethereum/receipt.ts";
import type { Rules } from "../ethereum/rules.ts";
import { StateKeySet } from "../evm/reads/stateKeySet.ts";
import { BEACON_ROOTS, BLOCK_HASHES, SYSTEM } from "../evm/systemCalls.ts";
import type { PlainCall } from "../state/fetch/prefetch.ts";
import type { Prepared } from "./executeTransactions.ts";
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
  formatWord(slot),
]);

const MAX_CALLS = 4_000;
/** Limit for one contract and selector. */
const MAX_KEYS = 512;
const SELECTOR_BYTES = 4;

/** The keys that earlier transactions read, by contract and selector. Values change from block to block, keys rarely do. */
export class ReadSets {
  readonly #sets = new LRUCache<string, StateKeySet>({ max: MAX_CALLS });

  /** Returns the keys that the transactions will probably read. */
  of(transactions: readonly Prepared[]): readonly StateKeys[] {
    const recalled = [...new Set(transactions.map(callOf))].flatMap((call) => this.#sets.get(call)?.keys() ?? []);
    return [{ accounts: transactions.flatMap(createdBy), slots: [], blockHashes: [] }, ...recalled];
  }

  learn(prepared: Prepared, keys: StateKeys): void {
    if (prepared.transaction.to === null) {
      return;
    }
    const call = callOf(prepared);
    const readSet = this.#sets.get(call) ?? new StateKeySet();
    if (readSet.size < MAX_KEYS) {
      readSet.add(keys);
    }
    this.#sets.set(call, readSet);
  }
}

const callOf = ({ transaction: { to, input } }: Prepared): string =>
  `${to}${formatData(input.subarray(0, SELECTOR_BYTES))}`;

/** Returns the address of the contract that a signed transaction creates. A run on guesses cannot know the sender's nonce. */
const createdBy = (prepared: Prepared): Address[] =>
  "sender" in prepared && prepared.transaction.to === null
    ? [createdAddress(prepared.sender, prepared.transaction.nonce)]
    : [];

/** Whether more is missing than the sender and slots, which one round fetches. */
export const lacksCode = (prepared: Prepared, { accounts }: StateKeys): boolean =>
  prepared.transaction.input.length > 0 && accounts.some((address) => address !== senderOf(prepared));

const senderOf = (prepared: Prepared): Address => ("sender" in prepared ? prepared.sender : prepared.transaction.from);

/** Formats a transaction as a call object without a gas price, so that nodes do not check the balance for gas. */
export const plainCallOf = (prepared: Prepared): PlainCall => {
  const { transaction } = prepared;
  const { to, value, input, gas } = transaction;
  return {
    from: senderOf(prepared),
    ...(to === null ? {} : { to }),
    gas: formatQuantity(gas),
    value: formatQuantity(value),
    data: formatData(input),
    ...("authorizationList" in transaction ? { authorizationList: transaction.authorizationList } : {}),
  };
};
