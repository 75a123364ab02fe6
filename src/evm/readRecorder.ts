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

const EMPTINESS_PARTS = ["balance", "nonce", "code"] as const satisfies readonly AccountField[];

/** Collects what transactions read. After an error of a reader its content is incomplete. */
export class ReadRecorder {
  readonly #accounts = new Map<Address, RecordedAccount>();
  readonly #blockHashes = new Set<bigint>();
  readonly #environment = new Set<EnvironmentOpcode>();
  readonly #overridden = new Map<Address, OverriddenKeys[]>();

  account(address: Address, ...fields: readonly AccountField[]): void {
    for (const field of fields) {
      if (!this.#isOverridden(address, field)) {
        this.#add(address, field);
      }
    }
  }

  slot(address: Address, slot: Hash): void {
    const overridden = this.#overridden.get(address);
    if (overridden?.some(({ slots }) => slots === "all" || slots.has(slot)) !== true) {
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

  /** Forgets everything, such as what an execution on guesses has read. */
  clear(): void {
    this.#accounts.clear();
    this.#blockHashes.clear();
    this.#environment.clear();
    this.#overridden.clear();
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

  #isOverridden(address: Address, field: AccountField): boolean {
    return this.#overridden.get(address)?.some(({ fields }) => fields.includes(field)) ?? false;
  }

  /** If a part of the account is overridden, its emptiness depends on the values of the other parts. */
  #add(address: Address, field: AccountField): void {
    const { fields } = this.#of(address);
    const isPartlyOverridden =
      field === "emptiness" && EMPTINESS_PARTS.some((part) => this.#isOverridden(address, part));
    if (!isPartlyOverridden) {
      fields.add(field);
      return;
    }
    for (const part of EMPTINESS_PARTS) {
      if (!this.#isOverridden(address, part)) {
        fields.add(part);
      }
    }
  }
}
