import type { Address, Hash } from "../ethereum/hex.ts";

/**
 * The fields of an account that a run can read. `emptiness`: whether nonce, balance and code are all nothing; before EIP-161,
 * whether the account exists. `storage`: whether the account has slots that are not zero (EIP-7610).
 */
export const ACCOUNT_FIELDS = ["balance", "nonce", "code", "emptiness", "storage"] as const;
export type AccountField = (typeof ACCOUNT_FIELDS)[number];

/** The opcodes that read neither state nor input, by their code. PREVRANDAO is DIFFICULTY before the Merge. */
export const ENVIRONMENT_OPCODES = {
  ORIGIN: 0x32,
  GASPRICE: 0x3a,
  BLOCKHASH: 0x40,
  COINBASE: 0x41,
  TIMESTAMP: 0x42,
  NUMBER: 0x43,
  PREVRANDAO: 0x44,
  GASLIMIT: 0x45,
  CHAINID: 0x46,
  BASEFEE: 0x48,
  BLOBBASEFEE: 0x4a,
  SLOTNUM: 0x4b,
  GAS: 0x5a,
} as const;
export type EnvironmentOpcode = keyof typeof ENVIRONMENT_OPCODES;

export const isEnvironmentOpcode = (name: unknown): name is EnvironmentOpcode =>
  typeof name === "string" && Object.hasOwn(ENVIRONMENT_OPCODES, name);

/** The keys of one account that a run read. */
export interface AccountReads {
  readonly address: Address;
  readonly fields: readonly AccountField[];
  readonly slots: readonly Hash[];
}

/**
 * The keys on which the result of a run depends: status, output, gas and logs. The result holds until one of them is written.
 * Plain data.
 *
 * A read counts also in a frame that failed, and for a value that the same run has written before. Which fields an opcode reads
 * depends on its operands and the fork, never on a value of the state. So SELFDESTRUCT always reads the emptiness of its target.
 * A payment to an account does not read its balance.
 *
 * The price of an access depends on whether the account is the fee recipient (EIP-3651). That is not a key: the user of a read
 * set compares the fee recipients of the two blocks with its accounts.
 */
export interface ReadSet {
  readonly accounts: readonly AccountReads[];
  /** Numbers of the blocks whose hash was read. */
  readonly blockHashes: readonly bigint[];
  /** The opcodes that ran. A check of a transaction adds the opcode of the value that it compares. */
  readonly environment: readonly EnvironmentOpcode[];
}
