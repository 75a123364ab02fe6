import type { EnvironmentOpcode, ReadSet } from "../../core/readSet.ts";
import type { Address } from "../../ethereum/hex.ts";
import type { StateKey } from "../stateKey.ts";

/** The state on which an answer depends. */
export interface AnswerReads {
  readonly keys: readonly StateKey[];
  /** Accounts of which it is known whether balance, nonce and code are all nothing. */
  readonly emptiness: readonly Address[];
  /** All accounts of the read set. */
  readonly addresses: ReadonlySet<Address>;
  /** Opcodes whose value is that of the block. An answer with one of them holds for its block only. */
  readonly blockOpcodes: ReadonlySet<EnvironmentOpcode>;
}

const BLOCK_OPCODES: ReadonlySet<EnvironmentOpcode> = new Set([
  ...(["BLOCKHASH", "COINBASE", "TIMESTAMP", "NUMBER", "PREVRANDAO"] as const),
  ...(["GASLIMIT", "BASEFEE", "BLOBBASEFEE", "SLOTNUM"] as const),
]);

/**
 * Returns the keys of a read set. A creation fails if its address has a nonce, code or slots (EIP-7610). An account without
 * nonce and code cannot get slots unless one of the two is written. So nonce and code count as read instead of the slots.
 */
export const answerReads = ({ accounts, blockHashes, environment }: ReadSet): AnswerReads => {
  const keys: StateKey[] = [];
  const emptiness: Address[] = [];
  for (const { address, fields, slots } of accounts) {
    const hasCreation = fields.includes("storage");
    for (const field of ["balance", "nonce", "code"] as const) {
      if (fields.includes(field) || (hasCreation && field !== "balance")) {
        keys.push({ field, address, slot: undefined });
      }
    }
    if (fields.includes("emptiness")) {
      emptiness.push(address);
    }
    for (const slot of slots) {
      keys.push({ field: "slot", address, slot });
    }
  }
  const blockOpcodes = new Set(environment.filter((opcode) => BLOCK_OPCODES.has(opcode)));
  if (blockHashes.length > 0) {
    blockOpcodes.add("BLOCKHASH");
  }
  return { keys, emptiness, addresses: new Set(accounts.map(({ address }) => address)), blockOpcodes };
};
