import type { AccountField, EnvironmentOpcode, ReadSet } from "../core/readSet.ts";
import type { Address, Hash } from "../ethereum/hex.ts";

interface RecordedAccount {
  readonly fields: Set<AccountField>;
  readonly slots: Set<Hash>;
}

/** The keys of an account whose values a client has set. */
export interface OverriddenKeys {
  readonly fields: readonly AccountField[];
  readonly slots: ReadonlySet<Hash> | "all";
}

/** Collects what transactions read. After an error of a reader its content is incomplete. */
export class ReadRecorder {
  readonly #accounts = new Map<Address, RecordedAccount>();
  readonly #blockHashes = new Set<bigint>();
  readonly #environment = new Set<EnvironmentOpcode>();
  readonly #overridden = new Map<Address, OverriddenKeys[]>();

  account(address: Address, ...fields: readonly AccountField[]): void {
    for (const field of fields) {
      if (!this.#isOverridden(address, (keys) => keys.fields.includes(field))) {
        this.#of(address).fields.add(field);
      }
    }
  }

  slot(address: Address, slot: Hash): void {
    if (!this.#isOverridden(address, ({ slots }) => slots === "all" || slots.has(slot))) {
      this.#of(address).slots.add(slot);
    }
  }

  blockHash(number: bigint): void {
    this.#blockHashes.add(number);
  }

  environment(opcode: EnvironmentOpcode): void {
    this.#environment.add(opcode);
  }

  add({ accounts, blockHashes, environment }: ReadSet): void {
    for (const { address, fields, slots } of accounts) {
      this.account(address, ...fields);
      for (const slot of slots) {
        this.slot(address, slot);
      }
    }
    for (const number of blockHashes) {
      this.blockHash(number);
    }
    for (const opcode of environment) {
      this.environment(opcode);
    }
  }

  /** From now on, reads of these keys are not recorded. */
  override(address: Address, keys: OverriddenKeys): void {
    this.#overridden.set(address, [...(this.#overridden.get(address) ?? []), keys]);
  }

  readSet(): ReadSet {
    return {
      accounts: [...this.#accounts].map(([address, { fields, slots }]) => ({
        address,
        fields: [...fields],
        slots: [...slots],
      })),
      blockHashes: [...this.#blockHashes],
      environment: [...this.#environment],
    };
  }

  #of(address: Address): RecordedAccount {
    const known = this.#accounts.get(address);
    if (known !== undefined) {
      return known;
    }
    const added = { fields: new Set<AccountField>(), slots: new Set<Hash>() };
    this.#accounts.set(address, added);
    return added;
  }

  #isOverridden(address: Address, isAmong: (keys: OverriddenKeys) => boolean): boolean {
    return this.#overridden.get(address)?.some(isAmong) ?? false;
  }
}
