import type { ReadSet } from "../../../src/core/readSet.ts";
import type { Address, Hash } from "../../../src/ethereum/hex.ts";
import { EMPTY_CODE_HASH, keccak256Hex } from "../../../src/ethereum/keccak.ts";
import { numberBytes } from "../../../src/ethereum/rlp.ts";
import type { EthereumFork } from "../../../src/ethereum/rules.ts";
import type { BlockEnvironment } from "../../../src/evm/engine.ts";
import type { PlainAccount, PlainState } from "../../support/builders/stateRoot.ts";
import { isSince } from "./fuzzOpcodes.ts";

const NOTHING = new Uint8Array(0);
const ABSENT: PlainAccount = { nonce: 0n, balance: 0n, code: NOTHING, codeHash: EMPTY_CODE_HASH, storage: new Map() };
/** Returns the byte 7. */
const OTHER_CODE = Uint8Array.fromHex("60075f5360015ff3");
const CHANGED = 0.7;

const isEmpty = ({ nonce, balance, code }: PlainAccount): boolean =>
  nonce === 0n && balance === 0n && code.length === 0;

/** Changes values of a state and of a block that a transaction did not read. */
export class UnreadChanges {
  readonly #random: () => number;
  readonly #fork: EthereumFork;
  readonly #reads: ReadSet;
  readonly #authorities: ReadonlySet<Address>;
  readonly #keys = new Set<string>();

  /** `authorities`: accounts of authorizations. They do not become empty ones that exist, because those get a refund (EIP-7702). */
  constructor(reads: ReadSet, fork: EthereumFork, authorities: ReadonlySet<Address>, random: () => number) {
    this.#random = random;
    this.#fork = fork;
    this.#reads = reads;
    this.#authorities = authorities;
    for (const { address, fields, slots } of reads.accounts) {
      for (const key of [...fields, ...slots]) {
        this.#keys.add(address + key);
      }
    }
  }

  #changes(isRead: boolean): boolean {
    return !isRead && this.#random() < CHANGED;
  }

  /** Changes accounts of the state, and accounts of which the transaction read something. `slots` are changed too. */
  state(before: PlainState, slots: readonly Hash[]): PlainState {
    const addresses = new Set([...before.keys(), ...this.#reads.accounts.map(({ address }) => address)]);
    const after = new Map(before);
    for (const address of addresses) {
      const account = before.get(address);
      const changed = this.#account(address, account ?? ABSENT, slots);
      const becomesOther = isEmpty(changed) !== isEmpty(account ?? ABSENT);
      const keepsEmptiness = becomesOther && this.#keys.has(`${address}emptiness`);
      const canExist = this.#canExist(changed) && !(isEmpty(changed) && this.#authorities.has(address));
      if (!keepsEmptiness && (account !== undefined || canExist)) {
        after.set(address, changed);
      }
    }
    return after;
  }

  /** Before EIP-161, an account that exists differs from none even if it is empty. */
  #canExist(account: PlainAccount): boolean {
    return !isEmpty(account) || (account.storage.size > 0 && isSince(this.#fork, "spuriousDragon"));
  }

  #account(address: Address, account: PlainAccount, slots: readonly Hash[]): PlainAccount {
    const has = (field: string) => this.#keys.has(address + field);
    const code = this.#changes(has("code")) ? OTHER_CODE : account.code;
    const nonce = this.#changes(has("nonce")) ? account.nonce + 5n : account.nonce;
    const balance = this.#changes(has("balance")) ? account.balance + 12_345n : account.balance;
    const storage = this.#storage(address, account, slots);
    const keepsStorage = has("storage") && storage.size > 0 !== account.storage.size > 0;
    return { nonce, balance, code, codeHash: keccak256Hex(code), storage: keepsStorage ? account.storage : storage };
  }

  #storage(address: Address, { storage }: PlainAccount, slots: readonly Hash[]): ReadonlyMap<Hash, Uint8Array> {
    const after = new Map(storage);
    for (const slot of new Set([...storage.keys(), ...slots])) {
      if (this.#changes(this.#keys.has(address + slot))) {
        after.set(slot, numberBytes(BigInt(Math.floor(this.#random() * 200) + 1)));
      }
    }
    return after;
  }

  /** Keeps the fee recipient: whether an access is warm depends on it (EIP-3651). */
  block(before: BlockEnvironment): BlockEnvironment {
    const has = (opcode: ReadSet["environment"][number]) => this.#reads.environment.includes(opcode);
    const known = new Set(this.#reads.blockHashes);
    const isNumberRead = has("NUMBER") || has("BLOCKHASH");
    return {
      ...before,
      number: this.#changes(isNumberRead) ? before.number + 1n : before.number,
      timestamp: this.#changes(has("TIMESTAMP")) ? before.timestamp + 1n : before.timestamp,
      gasLimit: this.#changes(has("GASLIMIT")) ? before.gasLimit + 1n : before.gasLimit,
      baseFee: this.#changes(has("BASEFEE")) ? before.baseFee + 1n : before.baseFee,
      blobBaseFee: this.#changes(has("BLOBBASEFEE")) ? before.blobBaseFee + 1n : before.blobBaseFee,
      prevRandao: this.#changes(has("PREVRANDAO")) ? keccak256Hex(NOTHING) : before.prevRandao,
      difficulty: this.#changes(has("PREVRANDAO")) ? (before.difficulty ?? 0n) + 1n : (before.difficulty ?? 0n),
      blockHash: (number) => before.blockHash(known.has(number) ? number : number + 1n),
    };
  }
}
