import { type Data, isData, isQuantity } from "../ethereum/hex.ts";
import { DEPOSIT_TYPE } from "../ethereum/transaction.ts";
import { type Fields, isFields } from "../json/jsonBytes.ts";

/** A field cannot be encoded, because it does not have the expected type or length. */
export class MalformedField extends Error {
  override readonly name = "MalformedField";
}

/** Returns what `read` finds in a response, or `otherwise` if a field of it is malformed. */
export const ifWellFormed = <T, U>(read: () => T, otherwise: U): T | U => {
  try {
    return read();
  } catch (error) {
    if (error instanceof MalformedField) {
      return otherwise;
    }
    throw error;
  }
};

/** Whether a field is absent. Nodes omit such a field or set it to null. */
export const isAbsent = (value: unknown): value is undefined | null => value === undefined || value === null;

export const dataOf = (value: unknown): Data => {
  if (!isData(value)) {
    throw new MalformedField("expected hex data");
  }
  return value;
};

export const bytesOf = (value: unknown, length: number): Data => {
  const data = dataOf(value);
  if (data.length !== 2 + 2 * length) {
    throw new MalformedField(`expected ${length} bytes`);
  }
  return data;
};

/** Returns the digits of bytes, lower case. Throws MalformedField. */
export const digitsOf = (value: unknown, length: number): string => bytesOf(value, length).slice(2).toLowerCase();

/** Parses a hex quantity. Some nodes return a JSON number instead. Returns undefined for any other value. */
export const quantityOf = (value: unknown): bigint | undefined => {
  const isCount = typeof value === "number" && Number.isSafeInteger(value) && value >= 0;
  return isQuantity(value) || isCount ? BigInt(value) : undefined;
};

/** Parses a quantity as `quantityOf` does. Throws MalformedField. */
export const numberOf = (value: unknown): bigint => {
  const number = quantityOf(value);
  if (number === undefined) {
    throw new MalformedField("expected a quantity");
  }
  return number;
};

export const listOf = (value: unknown): readonly unknown[] => {
  if (!Array.isArray(value)) {
    throw new MalformedField("expected a list");
  }
  return value;
};

export const fieldsOf = (value: unknown): Fields => {
  if (!isFields(value)) {
    throw new MalformedField("expected an object");
  }
  return value;
};

/** Whether two hex values are equal, in any letter case. */
export const isSame = (value: unknown, expected: string): boolean =>
  typeof value === "string" && (value === expected || value.toLowerCase() === expected.toLowerCase());

export const isNumber = (value: unknown, expected: bigint): boolean =>
  (isQuantity(value) || typeof value === "number") && BigInt(value) === expected;

/** The highest type of a transaction (EIP-2718). A higher number would be encoded as the byte of another type. */
const MAX_TYPE = 0x7f;

/** Returns the type of a transaction or receipt object. Nodes from before EIP-2718 return none. Throws MalformedField. */
export const rpcTypeOf = ({ type }: Fields): number => {
  const number = isAbsent(type) ? 0 : Number(numberOf(type));
  if (number > MAX_TYPE) {
    throw new MalformedField("expected a type of a transaction");
  }
  return number;
};

/** Whether a transaction or receipt object is that of a deposit. Throws MalformedField. */
export const isDeposit = (fields: Fields): boolean => rpcTypeOf(fields) === DEPOSIT_TYPE;
