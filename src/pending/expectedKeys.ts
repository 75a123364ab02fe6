import { LRUCache } from "lru-cache";
import type { PlainCall, StateKeys, StateValues } from "../core/stateReader.ts";
import { type Address, formatData, formatQuantity, formatWord, type Hash } from "../ethereum/hex.ts";
import { BASE_FEE_VAULT, L1_BLOCK, L1_FEE_VAULT, OPERATOR_FEE_VAULT } from "../ethereum/opFees.ts";
import { createdAddress } from "../ethereum/receipt.ts";
import type { Rules } from "../ethereum/rules.ts";
import { BEACON_ROOTS, BLOCK_HASHES } from "../ethereum/systemContracts.ts";
import { StateKeySet } from "../evm/reads/stateKeySet.ts";
import { SYSTEM } from "../evm/systemCalls.ts";
import type { ExecutableMessage } from "./executableMessage.ts";
import type { Prepared } from "./executeTransaction.ts";

const OP_ACCOUNTS: readonly Address[] = [L1_BLOCK, BASE_FEE_VAULT, L1_FEE_VAULT, OPERATOR_FEE_VAULT];
/** Slots of the L1Block contract (Jovian). */
const L1_BLOCK_SLOTS = 9;

/**
 * Returns the keys that every flashblock reads: accounts of system calls and fees, L1 attributes, and the feed's access list.
 * They are fetched before its execution.
 */
export const alwaysReadKeys = ({ environment, index, accessList }: ExecutableMessage, rules: Rules): StateKeys => ({
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
/** One contract and selector with this number learns no more. */
const MAX_KEYS = 512;
/** Of all calls. A key takes some 460 bytes of the thread's heap of 512 MiB. */
const MAX_ALL_KEYS = 300_000;
const SELECTOR_BYTES = 4;

/** The keys that earlier transactions read, by contract and selector. Values change from block to block, keys rarely do. */
export class ReadSets {
  readonly #sets = new LRUCache<string, StateKeySet>({
    max: MAX_CALLS,
    maxSize: MAX_ALL_KEYS,
    sizeCalculation: ({ size }) => size + 1,
  });

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
      // Only what is set anew is measured again.
      this.#sets.delete(call);
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

const PUSH1 = 0x60;
const PUSH20 = 0x73;
const PUSH32 = 0x7f;
const SLOAD = 0x54;
const ADDRESS_BYTES = 20;
/** Shorter values are numbers. Longer ones may have flags before the address. */
const MIN_ADDRESS_BYTES = 18;
const MAX_ADDRESS_BYTES = 22;
/** Limits of the hints in one contract's code. */
const MAX_SLOTS = 24;
const MAX_ACCOUNTS = 8;
/** keccak256("eip1967.proxy.implementation") - 1 (EIP-1967). */
const IMPLEMENTATION: Hash = "0x360894a13ba1a3210667c828492db98dca3e2076cc3735a920a3ca505d382bbc";

/** State that a contract's code is likely to read. */
interface CodeHints {
  readonly slots: readonly Hash[];
  readonly accounts: readonly Address[];
}

/** Scans code for constant slots that it loads, and for addresses. */
const scanCode = (code: Uint8Array): CodeHints => {
  const slots = new Set<Hash>();
  const accounts = new Set<Address>();
  for (let at = 0; at < code.length; at++) {
    const opcode = code[at] ?? 0;
    if (opcode < PUSH1 || opcode > PUSH32) {
      continue;
    }
    const length = opcode - PUSH1 + 1;
    if (at + length >= code.length) {
      // The data at the end of code, for example a compiler's metadata, can look like an instruction without its operand.
      break;
    }
    const constant = formatData(code.subarray(at + 1, at + 1 + length));
    const word: Hash = `0x${constant.slice(2).padStart(64, "0")}`;
    at += length;
    if (code[at + 1] === SLOAD || word === IMPLEMENTATION) {
      slots.add(word);
    }
    if (opcode === PUSH20 && !/^0x(f+|0+)$/.test(constant)) {
      accounts.add(constant);
    }
  }
  return { slots: [...slots].slice(0, MAX_SLOTS), accounts: [...accounts].slice(0, MAX_ACCOUNTS) };
};

const addressIn = (value: Uint8Array): Address | undefined =>
  value.length >= MIN_ADDRESS_BYTES && value.length <= MAX_ADDRESS_BYTES
    ? `0x${formatData(value.subarray(Math.max(0, value.length - ADDRESS_BYTES)))
        .slice(2)
        .padStart(40, "0")}`
    : undefined;

/** Proxies by their implementation: the implementation's code reads the proxy's slots. */
export interface Implementations {
  get(implementation: Address): Address | undefined;
  set(implementation: Address, proxy: Address): unknown;
}

/**
 * Predicts the keys that executions are likely to read after these values, so that they are fetched one round earlier.
 * They are constant slots of contracts, and contracts whose addresses are in slots or in code.
 */
export const predictKeys = (
  values: StateValues,
  codeOf: (hash: Hash) => Uint8Array | undefined,
  implementations: Implementations,
): StateKeys => {
  const accounts: Address[] = [];
  const slots: (readonly [Address, Hash])[] = [];
  for (const [address, slot, value] of values.slots) {
    const target = addressIn(value);
    if (target === undefined) {
      continue;
    }
    accounts.push(target);
    if (slot === IMPLEMENTATION) {
      implementations.set(target, address);
    }
  }
  for (const [address, account] of values.accounts) {
    const code = account && codeOf(account.codeHash);
    if (!code) {
      continue;
    }
    const hints = scanCode(code);
    const owner = implementations.get(address) ?? address;
    accounts.push(...hints.accounts);
    slots.push(...hints.slots.map((slot) => [owner, slot] as const));
  }
  return { accounts, slots, blockHashes: [] };
};
