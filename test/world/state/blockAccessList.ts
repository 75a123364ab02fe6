import { type Address, type Data, formatData, type Hash, parseData } from "../../../src/ethereum/hex.ts";
import { keccak256Hex } from "../../../src/ethereum/keccak.ts";
import { encodeBytes, encodeList, encodeNumber, stripZeros } from "../../../src/ethereum/rlp.ts";
import type { PhaseDiff } from "./blockDraft.ts";

interface Change<Value> {
  readonly index: number;
  readonly value: Value;
}

interface ListedAccount {
  readonly address: Address;
  readonly slots: Map<Hash, Change<Hash>[]>;
  readonly reads: Set<Hash>;
  readonly balances: Change<bigint>[];
  readonly nonces: Change<bigint>[];
  readonly codes: Change<Data>[];
}

const createListed = (address: Address): ListedAccount => ({
  ...{ address, slots: new Map(), reads: new Set() },
  ...{ balances: [], nonces: [], codes: [] },
});

const byText = (a: string, b: string): number => (a < b ? -1 : 1);

/** Collects what each phase changed (EIP-7928). The index of a phase is its position. */
const collect = (phases: readonly PhaseDiff[]): readonly ListedAccount[] => {
  const accounts = new Map<Address, ListedAccount>();
  for (const [index, phase] of phases.entries()) {
    for (const { address, before, after, slots } of phase) {
      const account = accounts.get(address) ?? createListed(address);
      accounts.set(address, account);
      if (before.balance !== after.balance) {
        account.balances.push({ index, value: after.balance });
      }
      if (before.nonce !== after.nonce) {
        account.nonces.push({ index, value: after.nonce });
      }
      if (before.code !== after.code) {
        account.codes.push({ index, value: after.code });
      }
      for (const [slot, from, to] of slots) {
        if (from === to) {
          account.reads.add(slot);
        } else {
          account.slots.set(slot, [...(account.slots.get(slot) ?? []), { index, value: to }]);
        }
      }
    }
  }
  return [...accounts.values()].sort((a, b) => byText(a.address, b.address));
};

const data = (value: Data): Uint8Array => encodeBytes(parseData(value));
const word = (value: Hash): Uint8Array => encodeBytes(stripZeros(parseData(value)));
const changes = <Value>(list: readonly Change<Value>[], encode: (value: Value) => Uint8Array): Uint8Array =>
  encodeList(list.map(({ index, value }) => encodeList([encodeNumber(index), encode(value)])));

const sortedSlots = ({ slots }: ListedAccount) => [...slots].sort(([a], [b]) => byText(a, b));
const sortedReads = ({ reads, slots }: ListedAccount) => [...reads].filter((slot) => !slots.has(slot)).sort(byText);

const encodeAccount = (account: ListedAccount): Uint8Array =>
  encodeList([
    data(account.address),
    encodeList(sortedSlots(account).map(([slot, list]) => encodeList([word(slot), changes(list, word)]))),
    encodeList(sortedReads(account).map(word)),
    changes(account.balances, encodeNumber),
    changes(account.nonces, encodeNumber),
    changes(account.codes, data),
  ]);

const quantity = (value: bigint | number): string => `0x${value.toString(16)}`;

const formatAccount = (account: ListedAccount) => ({
  address: account.address,
  storageChanges: sortedSlots(account).map(([key, list]) => ({
    key,
    changes: list.map(({ index, value }) => ({ index: quantity(index), value })),
  })),
  storageReads: sortedReads(account),
  balanceChanges: account.balances.map(({ index, value }) => ({ index: quantity(index), value: quantity(value) })),
  nonceChanges: account.nonces.map(({ index, value }) => ({ index: quantity(index), value: quantity(value) })),
  codeChanges: account.codes.map(({ index, value }) => ({ index: quantity(index), code: value })),
});

export interface BlockAccessList {
  /** The result of eth_getBlockAccessList. */
  readonly json: readonly unknown[];
  /** The result of debug_getRawBlockAccessList. */
  readonly raw: Data;
  /** The header field blockAccessListHash. */
  readonly hash: Hash;
}

/** Creates the access list of a block. Phase 0 precedes the transactions, and the last phase follows them. */
export const createBlockAccessList = (phases: readonly PhaseDiff[]): BlockAccessList => {
  const accounts = collect(phases);
  const encoded = encodeList(accounts.map(encodeAccount));
  return { json: accounts.map(formatAccount), raw: formatData(encoded), hash: keccak256Hex(encoded) };
};
