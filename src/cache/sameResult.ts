import { isQuantity } from "../ethereum/hex.ts";
import { parseJson } from "../json/jsonBytes.ts";
import { isNumeric } from "../verification/resultForms.ts";

/** Single values of the state. The nodes of a chain have one of them, so a node with another one is wrong. */
const SINGLE_VALUES: ReadonlySet<string> = new Set([
  "eth_getBalance",
  "eth_getTransactionCount",
  "eth_getCode",
  "eth_getStorageAt",
]);

/** Nodes of different software give different results for these, and all of them are right. */
const VARYING = /^(debug|trace)_|^eth_(estimateGas|createAccessList|getProof|feeHistory)$/;

/** Nodes of different software return the same for these. */
const OTHER_STATE: ReadonlySet<string> = new Set([
  "eth_call",
  "eth_getStorageValues",
  "eth_getAccount",
  "eth_getAccountInfo",
]);

export const isSingleValue = (method: string): boolean => SINGLE_VALUES.has(method);

export const variesByNode = (method: string): boolean => VARYING.test(method);

/** Whether two origins must agree on the response, if the chain requires that of state. */
export const needsAgreement = (method: string): boolean => SINGLE_VALUES.has(method) || OTHER_STATE.has(method);

/**
 * Formats the canonical JSON text of a value: object keys in code unit order, no whitespace, no undefined members.
 * Two values have the same text only if they are equal. A number too large for a double differs from `null`.
 */
export const formatCanonical = (value: unknown): string => {
  if (Array.isArray(value)) {
    return `[${value.map(formatCanonical).join(",")}]`;
  }
  if (typeof value === "object" && value !== null) {
    return formatObject(value as Readonly<Record<string, unknown>>);
  }
  if (typeof value === "number" && !Number.isFinite(value)) {
    return String(value);
  }
  return JSON.stringify(value) ?? "null";
};

const formatObject = (object: Readonly<Record<string, unknown>>): string => {
  const members: string[] = [];
  for (const name of Object.keys(object).sort()) {
    if (object[name] !== undefined) {
      members.push(`${JSON.stringify(name)}:${formatCanonical(object[name])}`);
    }
  }
  return `{${members.join(",")}}`;
};

/** Larger results must have equal bytes, because parsing them would block the event loop. */
const MAX_PARSED_BYTES = 64 * 1024;

const parse = (body: Uint8Array): unknown => {
  try {
    return parseJson(body);
  } catch {
    return undefined;
  }
};

/**
 * Whether two results of one method mean the same. Nodes differ in the case of hex digits, in leading zeros of numbers, in
 * whitespace, and in the order of members.
 */
export const isSameResult = (method: string, one: Uint8Array, other: Uint8Array): boolean => {
  if (Buffer.compare(one, other) === 0) {
    return true;
  }
  if (one.byteLength > MAX_PARSED_BYTES || other.byteLength > MAX_PARSED_BYTES) {
    return false;
  }
  const values = [parse(one), parse(other)] as const;
  if (isNumeric(method)) {
    return values.every(isQuantity) && BigInt(String(values[0])) === BigInt(String(values[1]));
  }
  const [first, second] = values.map((value) => formatCanonical(value).toLowerCase());
  return first === second && values[0] !== undefined;
};
