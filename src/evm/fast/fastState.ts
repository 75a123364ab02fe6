import type { AccountChange, StateChanges, StateReader } from "../../core/stateReader.ts";
import type { Address, Hash } from "../../ethereum/hex.ts";
import { EMPTY_CODE_HASH } from "../../ethereum/keccak.ts";
import type { AccountValues, ExecutionState } from "../executionState.ts";
import type { FastInstance, SelectedState } from "./fastInstance.ts";
import type { ModuleMemory } from "./moduleMemory.ts";

const NOTHING = new Uint8Array(0);
const SLOT_AT = 20;
const VALUE_AT = 52;
const WORD_BYTES = 32;
const CHANGE_HEAD_BYTES = 100;

const EXISTS = 1;
const IS_CLEARED = 2;
const HAS_CODE = 4;
const HAS_STORAGE = 8;

/** The state of one execution inside an instance of the module. */
export class FastState implements ExecutionState, SelectedState {
  readonly instance: FastInstance;
  readonly id: number;
  readonly reader: StateReader;
  readonly codeOwners = new Map<Hash, Address>();

  constructor(instance: FastInstance, reader: StateReader) {
    this.instance = instance;
    this.reader = reader;
    this.id = instance.exports.add_state();
  }

  #at(address: Address): ModuleMemory {
    const memory = this.instance.select(this);
    memory.setAddress(this.instance.scratch, address);
    return memory;
  }

  #atSlot(address: Address, slot: Hash): ModuleMemory {
    const memory = this.#at(address);
    memory.setHash(this.instance.scratch + SLOT_AT, slot);
    return memory;
  }

  accountOf(address: Address): AccountValues | undefined {
    const { instance } = this;
    const memory = this.#at(address);
    const exists = instance.check(instance.exports.get_account());
    if (exists === 0) {
      return undefined;
    }
    const at = instance.scratch;
    return { nonce: memory.uint64(at), balance: memory.word(at + 8), codeHash: memory.bytes(at + 40, WORD_BYTES) };
  }

  nonceOf(address: Address): bigint {
    const memory = this.#at(address);
    this.instance.check(this.instance.exports.get_account());
    return memory.uint64(this.instance.scratch);
  }

  balanceOf(address: Address): bigint {
    const memory = this.#at(address);
    this.instance.check(this.instance.exports.get_account());
    return memory.word(this.instance.scratch + 8);
  }

  codeOf(address: Address): Uint8Array {
    const { instance } = this;
    const memory = this.#at(address);
    instance.check(instance.exports.get_account());
    if (memory.hash(instance.scratch + 40) === EMPTY_CODE_HASH) {
      return NOTHING;
    }
    this.#at(address);
    const length = instance.check(instance.exports.get_code());
    return memory.bytes(instance.exports.output(), length);
  }

  storageOf(address: Address, slot: Hash): Uint8Array {
    const memory = this.#atSlot(address, slot);
    this.instance.check(this.instance.exports.get_storage());
    return memory.shortWord(this.instance.scratch);
  }

  setAccount(address: Address, nonce: bigint, balance: bigint): void {
    const memory = this.#at(address);
    memory.setWord(this.instance.scratch + SLOT_AT, nonce);
    memory.setWord(this.instance.scratch + VALUE_AT, balance);
    this.instance.check(this.instance.exports.set_account());
  }

  addBalance(address: Address, amount: bigint): void {
    this.setAccount(address, this.nonceOf(address), BigInt.asUintN(256, this.balanceOf(address) + amount));
  }

  setCode(address: Address, code: Uint8Array): void {
    const { instance } = this;
    const into = instance.exports.reserve(code.length);
    const memory = this.#at(address);
    memory.setBytes(into, code);
    instance.check(instance.exports.set_code(code.length));
  }

  clear(address: Address): void {
    this.#at(address);
    this.instance.check(this.instance.exports.clear_storage());
  }

  setStorage(address: Address, slot: Hash, value: Uint8Array): void {
    const memory = this.#atSlot(address, slot);
    memory.setShortWord(this.instance.scratch + VALUE_AT, value);
    this.instance.check(this.instance.exports.set_storage());
  }

  presetStorage(address: Address, slot: Hash, value: Uint8Array): void {
    const memory = this.#atSlot(address, slot);
    memory.setShortWord(this.instance.scratch + VALUE_AT, value);
    this.instance.exports.preset_storage();
  }

  endTransaction(removesEmpty: boolean): void {
    this.instance.select(this);
    this.instance.exports.end_writes(removesEmpty ? 1 : 0);
  }

  changes(): StateChanges {
    const { instance } = this;
    const memory = instance.select(this);
    instance.exports.changes();
    memory.refresh();
    const changes = new Map<Address, AccountChange>();
    let at = instance.exports.output();
    const count = memory.uint32(at);
    at += 4;
    for (let index = 0; index < count; index++) {
      const [address, change, next] = readChange(memory, at);
      changes.set(address, change);
      at = next;
    }
    return changes;
  }
}

const readChange = (memory: ModuleMemory, start: number): readonly [Address, AccountChange, next: number] => {
  const flags = memory.uint32(start + 20);
  const account = {
    nonce: memory.uint64(start + 24),
    balance: memory.word(start + 32),
    codeHash: memory.hash(start + 64),
    ...(flags & HAS_STORAGE ? { hasStorage: true } : {}),
  };
  const codeLength = memory.uint32(start + CHANGE_HEAD_BYTES - 4);
  const code = flags & HAS_CODE ? { code: memory.bytes(start + CHANGE_HEAD_BYTES, codeLength) } : {};
  let at = start + CHANGE_HEAD_BYTES + codeLength;
  const slots = new Map<Hash, Uint8Array>();
  const count = memory.uint32(at);
  at += 4;
  for (let index = 0; index < count; index++) {
    slots.set(memory.hash(at), memory.shortWord(at + WORD_BYTES));
    at += 2 * WORD_BYTES;
  }
  const change = {
    account: flags & EXISTS ? account : undefined,
    ...code,
    isCleared: (flags & IS_CLEARED) !== 0,
    slots,
  };
  return [memory.address(start), change, at];
};
