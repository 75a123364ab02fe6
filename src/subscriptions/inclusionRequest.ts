import { type Data, type Hash, isData, lowerPrefix } from "../ethereum/hex.ts";
import { isFields } from "../json/jsonBytes.ts";
import { invalidParams } from "../jsonrpc/rpcError.ts";
import { parseTransactionHash } from "./transactionReceipts.ts";

/** What a `transactionInclusion` subscription waits for. */
export interface InclusionRequest {
  readonly kind: "transactionInclusion";
  readonly hash: Hash;
  /** It also reports reorganisations, and ends when the block is final. Otherwise it ends with the first inclusion. */
  readonly includesReorgs: boolean;
}

/** The same, of a transaction that is still to be sent. */
export interface InclusionOfRaw extends Omit<InclusionRequest, "hash"> {
  readonly raw: Data;
}

const parseRaw = (value: unknown): Data => {
  const raw = lowerPrefix(value);
  if (!isData(raw)) {
    throw invalidParams("transaction: expected bytes of hex with 0x prefix");
  }
  return raw;
};

/** Parses the option of `transactionInclusion`. Throws RpcError. */
export const parseInclusion = (option: unknown): InclusionRequest | InclusionOfRaw => {
  const { transaction, hash, includeReorgs } = isFields(option) ? option : {};
  const kind = "transactionInclusion";
  const hasTransaction = (transaction ?? undefined) !== undefined;
  if (hasTransaction === ((hash ?? undefined) !== undefined)) {
    throw invalidParams("exactly one of transaction or hash must be provided");
  }
  const includesReorgs = includeReorgs ?? false;
  if (typeof includesReorgs !== "boolean") {
    throw invalidParams("includeReorgs: expected true or false");
  }
  return hasTransaction
    ? { kind, raw: parseRaw(transaction), includesReorgs }
    : { kind, hash: parseTransactionHash(hash), includesReorgs };
};
