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
import { invalidParams } from "../jsonrpc/rpcError.ts";

export type Fields = Readonly<Record<string, unknown>>;

const UINT64 = 2n ** 64n;
const UINT256 = 2n ** 256n;

/**
 * Readers of a payload's fields. A field that is missing or null is undefined; an error names the place of a wrong one. As in
 * geth (common/hexutil), an empty string is zero or no bytes, and the prefix may be `0X`.
 */

const wrong = (place: string, wanted: string) => invalidParams(`${place} must be ${wanted}`);
const isMissing = (value: unknown): value is undefined | null => value === undefined || value === null;

export const parseFields = (value: unknown, place: string): Fields | undefined => {
  if (isMissing(value)) return undefined;
  if (typeof value !== "object" || Array.isArray(value)) throw wrong(place, "an object");
  return value as Fields;
};

export const parseList = (value: unknown, place: string): readonly unknown[] | undefined => {
  if (isMissing(value)) return undefined;
  if (!Array.isArray(value)) throw wrong(place, "an array");
  return value;
};

export const parseFlag = (value: unknown, place: string): boolean => {
  if (isMissing(value)) return false;
  if (typeof value !== "boolean") throw wrong(place, "a boolean");
  return value;
};

const parseNumber = (value: unknown, place: string, limit: bigint, wanted: string): bigint | undefined => {
  if (isMissing(value)) return undefined;
  const hex = value === "" ? "0x0" : lowerPrefix(value);
  if (!isQuantity(hex)) throw wrong(place, wanted);
  const number = BigInt(hex);
  if (number >= limit) throw wrong(place, wanted);
  return number;
};

export const parseUint64 = (value: unknown, place: string): bigint | undefined =>
  parseNumber(value, place, UINT64, "a hex quantity below 2^64");

export const parseUint256 = (value: unknown, place: string): bigint | undefined =>
  parseNumber(value, place, UINT256, "a hex quantity below 2^256");

export const parseAddress = (value: unknown, place: string): Address | undefined => {
  if (isMissing(value)) return undefined;
  const hex = lowerPrefix(value);
  if (!isAddress(hex)) throw wrong(place, "an address of 20 bytes");
  return lower(hex);
};

export const parseHash = (value: unknown, place: string): Hash | undefined => {
  if (isMissing(value)) return undefined;
  const hex = lowerPrefix(value);
  if (!isData(hex) || hex.length !== 66) throw wrong(place, "a hash of 32 bytes");
  return lower(hex);
};

export const parseBytes = (value: unknown, place: string): Uint8Array | undefined => {
  if (isMissing(value)) return undefined;
  const hex = value === "" ? "0x" : lowerPrefix(value);
  if (!isData(hex)) throw wrong(place, "hex data");
  return parseData(hex);
};

/** A slot or its value: up to 32 bytes, and a quantity is taken for one too. */
export const parseWord = (value: unknown, place: string): Hash => {
  const hex = lowerPrefix(value);
  if (!isQuantity(hex) || hex.length > 66) throw wrong(place, "a word of 32 bytes");
  return `0x${hex.slice(2).toLowerCase().padStart(64, "0")}`;
};

const lower = (value: Data): Data => `0x${value.slice(2).toLowerCase()}`;
