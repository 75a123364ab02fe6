import { type Address, type Data, type Hash, isAddress, isData, isQuantity, parseData } from "../chain/hex.ts";
import { invalidParams } from "../jsonrpc/rpcError.ts";

export type Fields = Readonly<Record<string, unknown>>;

const UINT64 = 2n ** 64n;
const UINT256 = 2n ** 256n;

/** Readers of a payload's fields. One that is missing or null is undefined; a wrong one is told with its place. */

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
  if (!isQuantity(value)) throw wrong(place, wanted);
  const number = BigInt(value);
  if (number >= limit) throw wrong(place, wanted);
  return number;
};

export const parseUint64 = (value: unknown, place: string): bigint | undefined =>
  parseNumber(value, place, UINT64, "a hex quantity below 2^64");

export const parseUint256 = (value: unknown, place: string): bigint | undefined =>
  parseNumber(value, place, UINT256, "a hex quantity below 2^256");

export const parseAddress = (value: unknown, place: string): Address | undefined => {
  if (isMissing(value)) return undefined;
  if (!isAddress(value)) throw wrong(place, "an address of 20 bytes");
  return lower(value);
};

export const parseHash = (value: unknown, place: string): Hash | undefined => {
  if (isMissing(value)) return undefined;
  if (!isData(value) || value.length !== 66) throw wrong(place, "a hash of 32 bytes");
  return lower(value);
};

export const parseBytes = (value: unknown, place: string): Uint8Array | undefined => {
  if (isMissing(value)) return undefined;
  if (!isData(value)) throw wrong(place, "hex data");
  return parseData(value);
};

/** A slot or its value: up to 32 bytes, and a quantity is taken for one too. */
export const parseWord = (value: unknown, place: string): Hash => {
  if (!isQuantity(value) || value.length > 66) throw wrong(place, "a word of 32 bytes");
  return `0x${value.slice(2).toLowerCase().padStart(64, "0")}`;
};

const lower = (value: Data): Data => `0x${value.slice(2).toLowerCase()}`;
