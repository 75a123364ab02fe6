import { type Grade, weakestGrade } from "../../core/grade.ts";
import type { BlockId, HeaderFields, Heads } from "../../core/heads.ts";
import type { EnvironmentOpcode, ReadSet } from "../../core/readSet.ts";
import type { Address } from "../../ethereum/hex.ts";
import { accountKey, accountKeys, type StateKey, slotKey, ZERO_VALUE } from "../stateKey.ts";
import type { ValueStore } from "../store/valueStore.ts";

/** The answer to a call, with all that it depends on. */
export interface CallResult {
  /** The bytes of a node, or of an execution here. */
  readonly body: Uint8Array;
  /** The block after whose state the call ran, or a later one to which the answer was moved. */
  readonly block: BlockId;
  readonly reads: CallReads;
  readonly header: ResultHeader;
  /** Of the state follower. An answer of an earlier generation may be of a state that changed without a block. */
  readonly generation: number;
  /** The name of the node that answered, or answered an earlier call of this text. */
  readonly node: string;
  /** The call can be executed again at a later block. */
  readonly isRepeatable: boolean;
  /** The weakest of what the call read. */
  readonly grade: Grade;
}

/** The header fields of a block on which answers may depend besides the block's opcodes. */
export interface ResultHeader {
  readonly feeRecipient: unknown;
  readonly gasLimit: unknown;
}

export const resultHeader = (header: HeaderFields | undefined): ResultHeader | undefined =>
  header && { feeRecipient: header.miner, gasLimit: header.gasLimit };

type HeldResult = Pick<CallResult, "reads" | "header">;

/** A gas limit is the start of an estimate. Two blocks with the same limit give the same start. */
const hasSameOpcodes = ({ reads: { blockOpcodes }, header }: HeldResult, other: ResultHeader): boolean => {
  const onlyGasLimit = [...blockOpcodes].every((opcode) => opcode === "GASLIMIT");
  return blockOpcodes.size === 0 || (onlyGasLimit && header.gasLimit === other.gasLimit);
};

/** The price of an access depends on whether the account is the fee recipient (EIP-3651). */
const hasSameWarmAccount = ({ reads: { addresses }, header }: HeldResult, { feeRecipient }: ResultHeader): boolean =>
  header.feeRecipient === feeRecipient ||
  ![header.feeRecipient, feeRecipient].some((address) => addresses.has(String(address).toLowerCase() as `0x${string}`));

/** Whether an answer does not depend on what differs between the header of its block and another one. */
const holdsUnder = (answer: HeldResult, other: ResultHeader): boolean =>
  hasSameOpcodes(answer, other) && hasSameWarmAccount(answer, other);

/** Whether an answer is that of a block: its own one, or a later one. All writes up to it must be known, and none may change the answer. */
export const isValidAt = (
  answer: CallResult,
  block: BlockId,
  values: Pick<ValueStore, "get" | "isChecked" | "isApplied" | "isWrittenSince">,
  heads: Pick<Heads, "header">,
): boolean => {
  if (block.hash === answer.block.hash) {
    return true;
  }
  if (!values.isChecked || block.number <= answer.block.number || !values.isApplied(answer.block)) {
    return false;
  }
  const header = resultHeader(heads.header(block.number));
  const isKnown = header !== undefined && values.isApplied(block);
  return isKnown && holdsUnder(answer, header) && areUnchanged(answer.reads, values, answer.block, block);
};

/** The state on which an answer depends. */
export interface CallReads {
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
export const callReads = ({ accounts, blockHashes, environment }: ReadSet): CallReads => {
  const keys: StateKey[] = [];
  const emptiness: Address[] = [];
  for (const { address, fields, slots } of accounts) {
    const hasCreation = fields.includes("storage");
    for (const field of ["balance", "nonce", "code"] as const) {
      if (fields.includes(field) || (hasCreation && field !== "balance")) {
        keys.push(accountKey(address, field));
      }
    }
    if (fields.includes("emptiness")) {
      emptiness.push(address);
    }
    for (const slot of slots) {
      keys.push(slotKey(address, slot));
    }
  }
  const blockOpcodes = new Set(environment.filter((opcode) => BLOCK_OPCODES.has(opcode)));
  if (blockHashes.length > 0) {
    blockOpcodes.add("BLOCKHASH");
  }
  return { keys, emptiness, addresses: new Set(accounts.map(({ address }) => address)), blockOpcodes };
};

/** Opcodes whose values are fields of the block's header, in calls too. */
const HEADER_OPCODES: ReadonlySet<EnvironmentOpcode> = new Set([
  ...(["COINBASE", "TIMESTAMP", "NUMBER", "PREVRANDAO", "GASLIMIT"] as const),
]);

/**
 * Whether all that a run read can be proven. Nothing proves that an account which it creates has no slots (EIP-7610), and the hash of
 * an earlier block. Clients treat fees in calls differently.
 */
export const isProvable = ({ accounts }: ReadSet, { blockOpcodes }: Pick<CallReads, "blockOpcodes">): boolean =>
  !accounts.some(({ fields }) => fields.includes("storage")) &&
  [...blockOpcodes].every((opcode) => HEADER_OPCODES.has(opcode));

/** Returns the keys of all values on which an answer depends. */
export const valuesRead = ({ keys, emptiness }: CallReads): readonly StateKey[] => [
  ...keys,
  ...emptiness.flatMap(accountKeys),
];

/**
 * Returns the grade of an answer that is valid at a block: also the write sets since say that it is. A written field of an account
 * whose emptiness counts may have changed it.
 */
export const gradeAt = (
  { grade, block, reads }: Pick<CallResult, "grade" | "block" | "reads">,
  at: BlockId,
  values: Pick<ValueStore, "gradeSince" | "isWrittenSince">,
): Grade => {
  const isWritten = reads.emptiness.flatMap(accountKeys).some((key) => values.isWrittenSince(key, block, at));
  return isWritten ? "stated" : weakestGrade([grade, values.gradeSince(block, at)]);
};

/** Whether balance, nonce and code of an account are all nothing. Undefined: that is not known. */
const isEmptyAt = (values: Pick<ValueStore, "get">, address: Address, block: BlockId): boolean | undefined => {
  const known = accountKeys(address).map((key) => values.get(key, block));
  if (known.some((value) => value !== undefined && value !== ZERO_VALUE)) {
    return false;
  }
  return known.includes(undefined) ? undefined : true;
};

/** Whether no block above `since`, up to `at`, wrote a key of these reads. Both blocks must be readable. */
const areUnchanged = (
  { keys, emptiness }: Pick<CallReads, "keys" | "emptiness">,
  values: Pick<ValueStore, "get" | "isWrittenSince">,
  since: BlockId,
  at: BlockId,
): boolean => {
  const isWritten = (key: StateKey): boolean => values.isWrittenSince(key, since, at);
  const hasSameEmptiness = (address: Address): boolean => {
    if (!accountKeys(address).some(isWritten)) {
      return true;
    }
    const before = isEmptyAt(values, address, since);
    return before !== undefined && before === isEmptyAt(values, address, at);
  };
  return !keys.some(isWritten) && emptiness.every(hasSameEmptiness);
};
