import type { StateKeys, StateValues } from "../core/stateReader.ts";
import { type Address, formatData, type Hash } from "../ethereum/hex.ts";

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
