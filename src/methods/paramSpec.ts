import { type Hex, isAddress, isData, isHash, isQuantity, lowerPrefix } from "../ethereum/hex.ts";
import { isFields } from "../json/jsonBytes.ts";
import { invalidParams } from "../jsonrpc/rpcError.ts";

/** A JSON value in canonical form, which equal requests share: hex in lower case, quantities minimal. */
export type CanonicalJson =
  | null
  | boolean
  | number
  | string
  | readonly CanonicalJson[]
  | { readonly [key: string]: CanonicalJson };

/** Returns a value that a parser of hex has read. */
export const hexOf = (value: CanonicalJson | undefined): Hex => `0x${String(value).slice(2)}`;

/** Returns a parameter's canonical value, or throws -32602 with `name` in the message. */
export type Parser<T extends CanonicalJson = CanonicalJson> = (value: unknown, name: string) => T;

export interface ParamSpec<T extends CanonicalJson = CanonicalJson> {
  readonly name: string;
  readonly read: Parser<T>;
  /** The parameter may be missing or null. Without `fallback`, it is then missing in the request too. */
  readonly optional: boolean;
  readonly fallback?: T;
}

export const required = <T extends CanonicalJson>(name: string, read: Parser<T>): ParamSpec<T> => ({
  name,
  read,
  optional: false,
});

export const optional = <T extends CanonicalJson>(name: string, read: Parser<T>, fallback?: T): ParamSpec<T> =>
  fallback === undefined ? { name, read, optional: true } : { name, read, optional: true, fallback };

const lower = (value: string): string => value.toLowerCase();

export const readAddress: Parser<string> = (value, name) => {
  const hex = lowerPrefix(value);
  if (!isAddress(hex)) {
    throw invalidParams(`invalid ${name}: want an address, 20 bytes of hex`);
  }
  return lower(hex);
};

export const readHash: Parser<string> = (value, name) => {
  const hex = lowerPrefix(value);
  if (!isHash(hex)) {
    throw invalidParams(`invalid ${name}: want 32 bytes of hex`);
  }
  return lower(hex);
};

/** An empty string means no bytes, as in geth (common/hexutil, checkText). */
export const readData: Parser<string> = (value, name) => {
  const hex = value === "" ? "0x" : lowerPrefix(value);
  if (!isData(hex)) {
    throw invalidParams(`invalid ${name}: want bytes of hex with 0x prefix`);
  }
  return lower(hex);
};

/** Accepts leading zeros, up to 256 bits. An empty string is zero, as in geth (common/hexutil, checkNumberText). */
export const readQuantity: Parser<string> = (value, name) => {
  const hex = value === "" ? "0x0" : lowerPrefix(value);
  if (!isQuantity(hex)) {
    throw invalidParams(`invalid ${name}: want a hex quantity with 0x prefix`);
  }
  const number = BigInt(hex);
  if (number >= 2n ** 256n) {
    throw invalidParams(`invalid ${name}: quantity larger than 256 bits`);
  }
  return `0x${number.toString(16)}`;
};

const DECIMAL = /^[0-9]{1,78}$/;

/** A quantity or a decimal number, as a JSON number or string. geth accepts these for a block count (HexOrDecimal64). */
export const readCount: Parser<string> = (value, name) => {
  if (typeof value === "number" && Number.isSafeInteger(value) && value >= 0) {
    return `0x${value.toString(16)}`;
  }
  const isDecimal = typeof value === "string" && DECIMAL.test(value);
  return readQuantity(isDecimal ? `0x${BigInt(value).toString(16)}` : value, name);
};

export const readBoolean: Parser<boolean> = (value, name) => {
  if (typeof value !== "boolean") {
    throw invalidParams(`invalid ${name}: want true or false`);
  }
  return value;
};

/** A number that a double cannot represent would become another number, and get the response of that one. */
export const readNumber: Parser<number> = (value, name) => {
  if (typeof value !== "number") {
    throw invalidParams(`invalid ${name}: want a number`);
  }
  const isExact = Number.isSafeInteger(value) || (Number.isFinite(value) && !Number.isInteger(value));
  if (!isExact) {
    throw invalidParams(`invalid ${name}: number out of range`);
  }
  return value;
};

/** A hexadecimal integer of up to 32 bytes, padded to 32. The error texts are those of geth. */
export const readSlot: Parser<string> = (value, name) => {
  const digits = typeof value === "string" ? value.replace(/^0x/i, "") : undefined;
  if (digits === undefined || digits === "") {
    throw invalidParams(`invalid ${name}: want a storage slot as a hex integer`);
  }
  if (!/^[0-9a-fA-F]*$/.test(digits)) {
    throw invalidParams(`invalid hex in storage key: ${JSON.stringify(value)}`);
  }
  if (digits.length > 64) {
    throw invalidParams(`storage key too long (want at most 32 bytes): ${JSON.stringify(value)}`);
  }
  return `0x${lower(digits).padStart(64, "0")}`;
};

/** Nodes return proof keys in the requested form, short or padded. Without a prefix, geth reads hex and reth decimal digits. */
export const readProofKey: Parser<string> = (value, name) => {
  readSlot(value, name);
  const key = lower(String(value));
  return key.startsWith("0x") ? key : `0x${key}`;
};

export const arrayOf =
  <T extends CanonicalJson>(read: Parser<T>): Parser<readonly T[]> =>
  (value, name) => {
    if (!Array.isArray(value)) {
      throw invalidParams(`invalid ${name}: want a list`);
    }
    return value.map((item: unknown, index) => read(item, `${name}[${index}]`));
  };

export const lengthOf = (value: unknown): number => (Array.isArray(value) ? value.length : 0);

/** Returns a parser that refuses a value with more parts before it parses them, so that they do not hold the event loop. */
export const atMost =
  <T extends CanonicalJson>(max: number, parts: string, read: Parser<T>, count = lengthOf): Parser<T> =>
  (value, name) => {
    if (count(value) > max) {
      throw invalidParams(`invalid ${name}: more than ${max} ${parts}`);
    }
    return read(value, name);
  };

/** Returns a parser that parses `null` as `fallback`. A missing parameter is still an error, as in geth. */
export const orNull =
  <T extends CanonicalJson>(read: Parser<T>, fallback: T): Parser<T> =>
  (value, name) =>
    value === null ? fallback : read(value, name);

type Fields = Readonly<Record<string, CanonicalJson>>;

/** Sets an own field. An assignment to `__proto__` would replace the prototype. */
const setField = (fields: Record<string, CanonicalJson>, key: string, value: CanonicalJson): void => {
  if (key === "__proto__") {
    Object.defineProperty(fields, key, { value, enumerable: true, configurable: true, writable: true });
  } else {
    fields[key] = value;
  }
};

/** The keys of a call are few. To sort them in place costs less than Array.sort, which copies them several times. */
const FEW_KEYS = 16;

/** Sorts keys in place. Returns whether they were sorted before. */
const sortKeys = (keys: string[]): boolean => {
  let isSorted = true;
  for (let index = 1; index < keys.length; index++) {
    const key = keys[index] ?? "";
    let place = index;
    for (; place > 0 && (keys[place - 1] ?? "") > key; place--) {
      keys[place] = keys[place - 1] ?? "";
    }
    keys[place] = key;
    isSorted &&= place === index;
    if (!isSorted && keys.length > FEW_KEYS) {
      keys.sort();
      return false;
    }
  }
  return isSorted;
};

/** Returns the object with its keys in order; the same object if they are. */
const sortFields = (fields: Fields): Fields => {
  const keys = Object.keys(fields);
  if (sortKeys(keys)) {
    return fields;
  }
  const sorted: Record<string, CanonicalJson> = {};
  for (const key of keys) {
    setField(sorted, key, fields[key] ?? null);
  }
  return sorted;
};

const isSet = (value: unknown): boolean => value !== null && value !== undefined;

/** The keys of an object, each with its parser, and their older names. */
interface ObjectKeys {
  readonly parsers: Readonly<Record<string, Parser>>;
  /** A value with the newer name wins. */
  readonly oldNames: Readonly<Record<string, string>>;
}

const readField = (
  fields: Record<string, CanonicalJson>,
  object: Readonly<Record<string, unknown>>,
  key: string,
  { parsers, oldNames, name }: ObjectKeys & { readonly name: string },
): void => {
  const read = Object.hasOwn(parsers, key) ? parsers[key] : undefined;
  const parsed = (read ?? readAny)(object[key], `${name}.${key}`);
  const newName = Object.hasOwn(oldNames, key) ? oldNames[key] : undefined;
  if (newName === undefined || !isSet(object[newName])) {
    setField(fields, newName ?? key, parsed);
  }
};

/** Parses an object with one parser per key. Unknown keys keep their values, because a node may know them. Null values are removed. */
export const objectOf =
  (
    parsers: ObjectKeys["parsers"],
    oldNames: ObjectKeys["oldNames"] = {},
  ): Parser<{ readonly [key: string]: CanonicalJson }> =>
  (value, name) => {
    if (!isFields(value)) {
      throw invalidParams(`invalid ${name}: want an object`);
    }
    const fields: Record<string, CanonicalJson> = {};
    const keys = { parsers, oldNames, name };
    for (const key of Object.keys(value)) {
      if (isSet(value[key])) {
        readField(fields, value, key, keys);
      }
    }
    return sortFields(fields);
  };

/** Parses an object that is a map, with one parser for its keys and one for its values. */
export const mapOf =
  (readKey: Parser<string>, readValue: Parser): Parser<{ readonly [key: string]: CanonicalJson }> =>
  (value, name) => {
    if (!isFields(value)) {
      throw invalidParams(`invalid ${name}: want an object`);
    }
    const entries = Object.entries(value).map(([key, item]): [string, CanonicalJson] => {
      const canonicalKey = readKey(key, `${name} key`);
      return [canonicalKey, readValue(item, `${name}.${canonicalKey}`)];
    });
    if (new Set(entries.map(([key]) => key)).size !== entries.length) {
      throw invalidParams(`invalid ${name}: the same key twice`);
    }
    return Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1)));
  };

/** Accepts any JSON value, and sorts the keys of its objects. */
export const readAny: Parser = (value, name) => {
  if (value === null || typeof value === "boolean" || typeof value === "string") {
    return value;
  }
  if (typeof value === "number") {
    return readNumber(value, name);
  }
  if (Array.isArray(value)) {
    return value.map((item: unknown, index) => readAny(item, `${name}[${index}]`));
  }
  return objectOf({})(value, name);
};

/** Parses params into canonical values, in order, without trailing optional ones that have no value. Throws -32602. */
export const parseParams = (params: readonly unknown[], readers: readonly ParamSpec[]): readonly CanonicalJson[] => {
  if (params.length > readers.length) {
    throw invalidParams(`too many arguments, want at most ${readers.length}`);
  }
  const values: CanonicalJson[] = [];
  for (let index = 0; index < readers.length; index++) {
    const reader = readers[index];
    if (reader === undefined) {
      continue;
    }
    const value = params[index];
    if (value !== undefined && !(value === null && reader.optional)) {
      values.push(reader.read(value, reader.name));
    } else if (!reader.optional) {
      throw invalidParams(`missing value for required argument ${index}: ${reader.name}`);
    } else {
      values.push(reader.fallback ?? null);
    }
  }
  while (values.length > 0 && values.at(-1) === null) {
    values.pop();
  }
  return values;
};
