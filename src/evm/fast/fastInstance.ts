import { randomBytes } from "node:crypto";
import type { StateReader } from "../../core/stateReader.ts";
import type { Address, Hash } from "../../ethereum/hex.ts";
import { EMPTY_CODE_HASH } from "../../ethereum/keccak.ts";
import type { BlockEnvironment } from "../engine.ts";
import { DeadlineError } from "../executionErrors.ts";
import { cryptoImports } from "./fastCrypto.ts";
import type { FastRules } from "./fastRules.ts";
import { ModuleMemory, moduleNumber } from "./moduleMemory.ts";

const MISSING = 0;
const EXISTS = 1;
const HAS_STORAGE = 2;
const FAILED = -1;
const NO_ERROR = Symbol("no error");

/** Functions of the module. Addresses and lengths are in bytes. */
export interface ModuleExports {
  readonly memory: WebAssembly.Memory;
  reserve(length: number): number;
  scratch(): number;
  output(): number;
  seed_maps(seed: bigint): void;
  add_state(): number;
  select_state(id: number): void;
  set_block(length: number): void;
  transact(length: number): number;
  system_call(length: number): number;
  get_account(): number;
  get_code(): number;
  get_storage(): number;
  set_account(): number;
  set_code(length: number): number;
  clear_storage(): number;
  set_storage(): number;
  preset_storage(): void;
  end_writes(removesEmpty: number): void;
  changes(): number;
  precompiles(spec: number): number;
}

/** The state that the module reads while it is selected. */
export interface SelectedState {
  readonly id: number;
  readonly reader: StateReader;
  /** Accounts by the hash of their code. */
  readonly codeOwners: Map<Hash, Address>;
}

/** One instance of a module, with the states of several executions. It runs one transaction at a time. */
export class FastInstance {
  readonly exports: ModuleExports;
  readonly memory: ModuleMemory;
  readonly scratch: number;
  readonly #isLate: () => boolean;
  #selected: SelectedState | undefined;
  #block: BlockEnvironment | undefined;
  #rules: FastRules | undefined;
  #error: unknown = NO_ERROR;
  #isBroken = false;

  constructor(module: WebAssembly.Module, isLate: () => boolean) {
    this.#isLate = isLate;
    const instance = new WebAssembly.Instance(module, { host: this.#imports() });
    // The module's own build defines these functions.
    this.exports = instance.exports as unknown as ModuleExports;
    this.memory = new ModuleMemory(this.exports.memory);
    this.exports.seed_maps(randomBytes(8).readBigUInt64LE());
    this.scratch = this.exports.scratch();
    this.memory.refresh();
  }

  /** Selects the state for the calls that follow. */
  select(source: SelectedState): ModuleMemory {
    if (this.#selected !== source) {
      this.exports.select_state(source.id);
      this.#selected = source;
    }
    this.memory.refresh();
    return this.memory;
  }

  /** Sets rules and block, unless they are set. */
  setBlock(rules: FastRules, block: BlockEnvironment): void {
    if (this.#block === block && this.#rules === rules) {
      return;
    }
    const { memory } = this;
    const at = this.exports.reserve(BLOCK_BYTES);
    memory.refresh();
    memory.setUint32(at, rules.spec);
    memory.setUint32(at + 4, rules.maxPairingBytes);
    memory.setUint64(at + 8, rules.chainId);
    memory.setWord(at + 16, block.number);
    memory.setWord(at + 48, block.timestamp);
    memory.setAddress(at + 80, block.coinbase);
    memory.setUint64(at + 100, moduleNumber(block.gasLimit, 64, "gas limit of the block"));
    memory.setUint64(at + 108, moduleNumber(block.baseFee, 64, "base fee"));
    memory.setHash(at + 116, block.prevRandao);
    memory.setWord(at + 148, block.difficulty ?? 0n);
    memory.setUint128(at + 180, moduleNumber(block.blobBaseFee, 128, "blob base fee"));
    memory.setUint64(at + 196, moduleNumber(block.slotNumber ?? 0n, 64, "slot number"));
    this.exports.set_block(BLOCK_BYTES);
    memory.refresh();
    this.#block = block;
    this.#rules = rules;
  }

  /** Runs the request in the module's input. Returns the position of the result. After a trap, the instance is not used again. */
  run(name: "transact" | "system_call", length: number): number {
    try {
      this.exports[name](length);
    } catch (error) {
      this.#isBroken = true;
      throw new Error("the module trapped", { cause: error });
    }
    this.memory.refresh();
    return this.exports.output();
  }

  get isBroken(): boolean {
    return this.#isBroken;
  }

  /** Throws the error that the reader threw, if a function of the module failed. */
  check(status: number): number {
    this.memory.refresh();
    if (status === FAILED) {
      this.throwReaderError();
    }
    return status;
  }

  throwReaderError(): never {
    const error = this.#error;
    this.#error = NO_ERROR;
    throw error === NO_ERROR ? new Error("a read of state failed") : error;
  }

  throwDeadline(): never {
    throw new DeadlineError();
  }

  /** Functions that the module calls. None may throw through the module. */
  #imports(): Record<string, unknown> {
    return {
      account: (at: number) => this.#guard((source, memory) => this.#account(source, memory, at)),
      code: (at: number) => this.#guard((source, memory) => this.#code(source, memory.hash(at))),
      storage: (at: number) =>
        this.#guard(({ reader }, memory) => {
          memory.setShortWord(at, reader.storage(memory.address(at), memory.hash(at + 20)));
          return EXISTS;
        }),
      block_hash: (number: bigint, at: number) =>
        this.#guard((_, memory) => {
          if (this.#block !== undefined) {
            memory.setHash(at, this.#block.blockHash(BigInt.asUintN(64, number)));
          }
          return EXISTS;
        }),
      is_late: () => (this.#isLate() ? 1 : 0),
      ...cryptoImports(() => {
        this.memory.refresh();
        return this.memory;
      }),
    };
  }

  #guard(read: (source: SelectedState, memory: ModuleMemory) => number): number {
    try {
      this.memory.refresh();
      return this.#selected === undefined ? FAILED : read(this.#selected, this.memory);
    } catch (error) {
      this.#error = error;
      return FAILED;
    }
  }

  #account({ reader, codeOwners }: SelectedState, memory: ModuleMemory, at: number): number {
    const address = memory.address(at);
    const account = reader.account(address);
    if (account === undefined) {
      return MISSING;
    }
    memory.setUint64(at, account.nonce);
    memory.setWord(at + 8, account.balance);
    memory.setHash(at + 40, account.codeHash);
    if (account.codeHash !== EMPTY_CODE_HASH) {
      codeOwners.set(account.codeHash, address);
    }
    return account.hasStorage === true ? HAS_STORAGE : EXISTS;
  }

  #code({ reader, codeOwners }: SelectedState, hash: Hash): number {
    const owner = codeOwners.get(hash);
    if (owner === undefined) {
      throw new Error("the module asked for code of no account");
    }
    const code = reader.code(hash, owner);
    const into = this.exports.reserve(code.length);
    this.memory.refresh();
    this.memory.setBytes(into, code);
    return code.length;
  }
}

const BLOCK_BYTES = 204;
