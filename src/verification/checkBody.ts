import { isUtf8 } from "node:buffer";
import { areItemsWhole } from "../core/wholeResults.ts";
import { asBuffer, isFields, skipSpace } from "../json/jsonBytes.ts";
import { skipValue, TOO_DEEP } from "../json/skipValue.ts";
import { type AccessListChecks, checkAccessList } from "./checkAccessList.ts";
import { type BlockChecks, checkBlock } from "./checkBlock.ts";
import { checkLogs, type LogsChecks } from "./checkLogs.ts";
import { checkProof, type ProofChecks } from "./checkProof.ts";
import { checkReceipt, type ReceiptChecks } from "./checkReceipt.ts";
import { checkBlockReceipts, type ReceiptsChecks } from "./checkReceipts.ts";
import {
  checkRawTransaction,
  checkSingleTransaction,
  type RawChecks,
  type SingleTransactionChecks,
} from "./checkSingleTransaction.ts";
import { type Finding, failed, passed } from "./findings.ts";

/** The checks of a response that must be JSON. `hasItems`: the result is a list, whose items may be errors. */
interface JsonChecks {
  readonly kind: "json";
  readonly hasItems?: boolean;
}

/** The checks of one response, as plain data for a thread. */
export type ResponseChecks =
  | JsonChecks
  | BlockChecks
  | SingleTransactionChecks
  | RawChecks
  | ReceiptChecks
  | ReceiptsChecks
  | LogsChecks
  | ProofChecks
  | AccessListChecks;

/** Whether the text is exactly one JSON value (RFC 8259). */
export const isJson = (bytes: Uint8Array): boolean => {
  if (!isUtf8(bytes)) {
    return false;
  }
  const end = skipValue(bytes, skipSpace(bytes, 0), 1);
  if (end === TOO_DEEP) {
    return parse(bytes) !== undefined;
  }
  return end > 0 && skipSpace(bytes, end) === bytes.length;
};

/** Returns undefined if the text is not JSON. Decodes as Latin-1, because all checked members are ASCII. */
const parse = (bytes: Uint8Array): unknown => {
  if (!isUtf8(bytes)) {
    return undefined;
  }
  try {
    return JSON.parse(asBuffer(bytes).toString("latin1"));
  } catch {
    return undefined;
  }
};

const checkValue = (value: unknown, checks: Exclude<ResponseChecks, JsonChecks>): readonly Finding[] => {
  switch (checks.kind) {
    case "block":
      return isFields(value) ? checkBlock(value, checks) : [failed("block")];
    case "transaction":
      return isFields(value) ? checkSingleTransaction(value, checks) : [failed("transaction")];
    case "receipt":
      return isFields(value) ? checkReceipt(value, checks) : [failed("transaction")];
    case "raw":
      return typeof value === "string" ? [checkRawTransaction(value, checks)] : [failed("transaction")];
    case "receipts":
      return Array.isArray(value) ? checkBlockReceipts(value, checks) : [failed("block")];
    case "logs":
      return Array.isArray(value) ? checkLogs(value, checks) : [failed("logs")];
    case "proof":
      return isFields(value) ? checkProof(value, checks.request) : [failed("proof")];
    case "accessList":
      return [checkAccessList(value, checks)];
  }
};

const checkJson = (body: Uint8Array, { hasItems }: JsonChecks): Finding => {
  if (!isJson(body)) {
    return failed("json");
  }
  return hasItems ? { ...passed("json"), isWhole: areItemsWhole(body) } : passed("json");
};

/** Returns the findings for a response's JSON text. There are none for `null`. */
export const checkBody = (body: Uint8Array, checks: ResponseChecks): readonly Finding[] => {
  if (checks.kind === "json") {
    return [checkJson(body, checks)];
  }
  const value = parse(body);
  if (value === undefined) {
    return [failed("json")];
  }
  return value === null ? [] : checkValue(value, checks);
};
