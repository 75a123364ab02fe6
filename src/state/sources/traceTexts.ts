import { type Address, type Hash, parseData } from "../../ethereum/hex.ts";
import { stripZeros } from "../../ethereum/rlp.ts";
import { type Fields, isFields } from "../../json/jsonBytes.ts";
import { bytesOf, dataOf, fieldsOf, isAbsent, listOf, numberOf } from "../../verification/jsonFields.ts";

/** An account in one side of a diff. A field that is absent did not change, or has no value. */
export interface DiffAccount {
  readonly balance?: bigint;
  readonly nonce?: bigint;
  readonly code?: Uint8Array;
  readonly codeHash?: Hash;
  /** Values without leading zero bytes. */
  readonly slots: ReadonlyMap<Hash, Uint8Array>;
}

export type DiffSide = ReadonlyMap<Address, DiffAccount>;

/** The writes of one transaction: the values before and after it. */
export interface TransactionDiff {
  readonly transactionHash: Hash;
  readonly pre: DiffSide;
  readonly post: DiffSide;
}

/** The response is of a tracer without diff mode. */
export class NoDiff extends Error {
  override readonly name = "NoDiff";
}

/** The node could not trace a transaction, or left one out. */
export class UntracedTransaction extends Error {
  override readonly name = "UntracedTransaction";
}

const wordOf = (value: string): Hash => `0x${value.slice(2).toLowerCase().padStart(64, "0")}`;

const addressOf = (value: unknown): Address => `0x${bytesOf(value, 20).slice(2).toLowerCase()}`;

const parseSlots = (value: unknown): ReadonlyMap<Hash, Uint8Array> => {
  const slots = new Map<Hash, Uint8Array>();
  for (const [slot, word] of Object.entries(isAbsent(value) ? {} : fieldsOf(value))) {
    // Some nodes write slots as quantities.
    numberOf(slot);
    slots.set(wordOf(slot), stripZeros(parseData(wordOf(`0x${numberOf(word).toString(16)}`))));
  }
  return slots;
};

const parseDiffAccount = (value: unknown): DiffAccount => {
  const { balance, nonce, code, codeHash, storage } = fieldsOf(value);
  return {
    ...(isAbsent(balance) ? {} : { balance: numberOf(balance) }),
    ...(isAbsent(nonce) ? {} : { nonce: numberOf(nonce) }),
    ...(isAbsent(code) ? {} : { code: parseData(dataOf(code)) }),
    ...(isAbsent(codeHash) ? {} : { codeHash: wordOf(bytesOf(codeHash, 32)) }),
    slots: parseSlots(storage),
  };
};

const parseSide = (side: Fields): DiffSide =>
  new Map(Object.entries(side).map(([key, account]) => [addressOf(key), parseDiffAccount(account)]));

/** Parses one item of a block's diff trace. Throws MalformedField, NoDiff or UntracedTransaction. */
export const parseTransactionDiff = (value: unknown): TransactionDiff => {
  const { txHash, result, error } = fieldsOf(value);
  if (!isAbsent(error) || isAbsent(txHash)) {
    throw new UntracedTransaction("a transaction of the block was not traced");
  }
  const { pre, post } = fieldsOf(result);
  if (!isFields(pre) || !isFields(post)) {
    throw new NoDiff("the tracer has no diff mode");
  }
  return { transactionHash: wordOf(bytesOf(txHash, 32)), pre: parseSide(pre), post: parseSide(post) };
};

/** The creations and self-destructions of one transaction, also those that failed or were reverted. */
export interface TransactionCalls {
  readonly transactionHash: Hash;
  /** The number of creations by their creator. */
  readonly creations: ReadonlyMap<Address, number>;
  /** The accounts that were created, and those that ran SELFDESTRUCT. */
  readonly accounts: ReadonlySet<Address>;
}

const CREATIONS: ReadonlySet<unknown> = new Set(["CREATE", "CREATE2"]);

/** Returns all frames of a call, itself first. */
const framesOf = (call: unknown): readonly Fields[] => {
  const frames = [fieldsOf(call)];
  for (const { calls } of frames) {
    for (const inner of isAbsent(calls) ? [] : listOf(calls)) {
      frames.push(fieldsOf(inner));
    }
  }
  return frames;
};

const parseTransactionCalls = (value: unknown): TransactionCalls => {
  const { txHash, result, error } = fieldsOf(value);
  if (!isAbsent(error) || isAbsent(txHash)) {
    throw new UntracedTransaction("a transaction of the block was not traced");
  }
  const creations = new Map<Address, number>();
  const accounts = new Set<Address>();
  for (const { type, from, to } of framesOf(result)) {
    if (CREATIONS.has(type)) {
      const creator = addressOf(from);
      creations.set(creator, (creations.get(creator) ?? 0) + 1);
      // geth names no account if the creation failed.
      if (!isAbsent(to)) {
        accounts.add(addressOf(to));
      }
    } else if (type === "SELFDESTRUCT") {
      accounts.add(addressOf(from));
    }
  }
  return { transactionHash: wordOf(bytesOf(txHash, 32)), creations, accounts };
};

/** Parses the result of debug_traceBlockByHash with callTracer. Throws MalformedField or UntracedTransaction. */
export const parseCallTrace = (value: unknown): readonly TransactionCalls[] => listOf(value).map(parseTransactionCalls);
