import { RLP } from "@ethereumjs/rlp";
import { formatData } from "./hex.ts";
import { InvalidTransaction } from "./transaction.ts";

export type RlpItem = Uint8Array | RlpItem[];

/** Decodes an RLP list. Throws InvalidTransaction for other bytes. */
export const decodeList = (bytes: Uint8Array): RlpItem[] => {
  try {
    const items = RLP.decode(bytes);
    if (Array.isArray(items)) {
      return items;
    }
  } catch (error) {
    throw new InvalidTransaction("not RLP", { cause: error });
  }
  throw new InvalidTransaction("not an RLP list");
};

/**
 * Creates a reader of a list's items, in order. `length` is the expected number of items.
 * The reader and each of its functions throw InvalidTransaction if the list or the next item has another form.
 */
export const createReader = (items: readonly RlpItem[], length: number) => {
  if (items.length !== length) {
    throw new InvalidTransaction(`${items.length} fields instead of ${length}`);
  }
  let next = 0;
  const bytes = (): Uint8Array => {
    const item = items[next++];
    if (!(item instanceof Uint8Array)) {
      throw new InvalidTransaction(`field ${next - 1} is a list`);
    }
    return item;
  };
  const list = (): readonly RlpItem[] => {
    const item = items[next++];
    if (!Array.isArray(item)) {
      throw new InvalidTransaction(`field ${next - 1} is not a list`);
    }
    return item;
  };
  const number = (maxBytes = 32): bigint => {
    const value = bytes();
    if (value.length > maxBytes || value[0] === 0) {
      throw new InvalidTransaction(`field ${next - 1} is not a number`);
    }
    return value.length === 0 ? 0n : BigInt(formatData(value));
  };
  const sized = (size: number) => {
    const value = bytes();
    if (value.length !== size) {
      throw new InvalidTransaction(`field ${next - 1} has ${value.length} bytes`);
    }
    return formatData(value);
  };
  return {
    bytes,
    list,
    number,
    uint64: () => number(8),
    hash: () => sized(32),
    address: () => sized(20),
    to: () => {
      if (items[next]?.length !== 0) {
        return sized(20);
      }
      bytes();
      return null;
    },
    flag: (): 0 | 1 => {
      const value = number(1);
      if (value > 1n) {
        throw new InvalidTransaction(`field ${next - 1} is neither 0 nor 1`);
      }
      return value === 1n ? 1 : 0;
    },
  };
};

export type Reader = ReturnType<typeof createReader>;
