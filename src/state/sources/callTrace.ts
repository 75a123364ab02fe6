import type { Address, Hash } from "../../ethereum/hex.ts";
import type { Fields } from "../../json/jsonBytes.ts";
import { bytesOf, fieldsOf, isAbsent, listOf } from "../../verification/jsonFields.ts";
import { UntracedTransaction } from "./diffTrace.ts";

/** The creations and self-destructions of one transaction, also those that failed or were reverted. */
export interface TransactionCalls {
  readonly transactionHash: Hash;
  /** The number of creations by their creator. */
  readonly creations: ReadonlyMap<Address, number>;
  /** The accounts that were created, and those that ran SELFDESTRUCT. */
  readonly accounts: ReadonlySet<Address>;
}

const CREATIONS: ReadonlySet<unknown> = new Set(["CREATE", "CREATE2"]);

const addressOf = (value: unknown): Address => `0x${bytesOf(value, 20).slice(2).toLowerCase()}`;

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
  return { transactionHash: `0x${bytesOf(txHash, 32).slice(2).toLowerCase()}`, creations, accounts };
};

/** Parses the result of debug_traceBlockByHash with callTracer. Throws MalformedField or UntracedTransaction. */
export const parseCallTrace = (value: unknown): readonly TransactionCalls[] => listOf(value).map(parseTransactionCalls);
