import {
  type Address,
  type Data,
  type Hash,
  isAddress,
  isData,
  isQuantity,
  lowerPrefix,
  parseData,
} from "../ethereum/hex.ts";
import type { Fields } from "../json/jsonBytes.ts";
import { invalidParams } from "../jsonrpc/rpcError.ts";

const UINT64 = 2n ** 64n;
const UINT256 = 2n ** 256n;

/**
 * Parsers of a payload's fields. They return `undefined` for a field that is missing or null. Errors name the path of the field.
 * An empty string is zero or no bytes, and the prefix may be `0X`. Source: geth, common/hexutil.
 */

const wrong = (path: string, wanted: string) => invalidParams(`${path} must be ${wanted}`);
const isMissing = (value: unknown): value is undefined | null => value === undefined || value === null;

export const parseFields = (value: unknown, path: string): Fields | undefined => {
  if (isMissing(value)) {
    return undefined;
  }
  if (typeof value !== "object" || Array.isArray(value)) {
    throw wrong(path, "an object");
  }
  return value as Fields;
};

export const parseList = (value: unknown, path: string): readonly unknown[] | undefined => {
  if (isMissing(value)) {
    return undefined;
  }
  if (!Array.isArray(value)) {
    throw wrong(path, "an array");
  }
  return value;
};

export const parseFlag = (value: unknown, path: string): boolean => {
  if (isMissing(value)) {
    return false;
  }
  if (typeof value !== "boolean") {
    throw wrong(path, "a boolean");
  }
  return value;
};

const parseNumber = (value: unknown, path: string, limit: bigint, wanted: string): bigint | undefined => {
  if (isMissing(value)) {
    return undefined;
  }
  const hex = value === "" ? "0x0" : lowerPrefix(value);
  if (!isQuantity(hex)) {
    throw wrong(path, wanted);
  }
  const number = BigInt(hex);
  if (number >= limit) {
    throw wrong(path, wanted);
  }
  return number;
};

export const parseUint64 = (value: unknown, path: string): bigint | undefined =>
  parseNumber(value, path, UINT64, "a hex quantity below 2^64");

export const parseUint256 = (value: unknown, path: string): bigint | undefined =>
  parseNumber(value, path, UINT256, "a hex quantity below 2^256");

export const parseAddress = (value: unknown, path: string): Address | undefined => {
  if (isMissing(value)) {
    return undefined;
  }
  const hex = lowerPrefix(value);
  if (!isAddress(hex)) {
    throw wrong(path, "an address of 20 bytes");
  }
  return lower(hex);
};

export const parseHash = (value: unknown, path: string): Hash | undefined => {
  if (isMissing(value)) {
    return undefined;
  }
  const hex = lowerPrefix(value);
  if (!isData(hex) || hex.length !== 66) {
    throw wrong(path, "a hash of 32 bytes");
  }
  return lower(hex);
};

export const parseBytes = (value: unknown, path: string): Uint8Array | undefined => {
  if (isMissing(value)) {
    return undefined;
  }
  const hex = value === "" ? "0x" : lowerPrefix(value);
  if (!isData(hex)) {
    throw wrong(path, "hex data");
  }
  return parseData(hex);
};

/** Parses a slot or its value: up to 32 bytes, or a quantity. */
export const parseWord = (value: unknown, path: string): Hash => {
  const hex = lowerPrefix(value);
  if (!isQuantity(hex) || hex.length > 66) {
    throw wrong(path, "a word of 32 bytes");
  }
  return `0x${hex.slice(2).toLowerCase().padStart(64, "0")}`;
};

const lower = (value: Data): Data => `0x${value.slice(2).toLowerCase()}`;
