import { RLP } from "@ethereumjs/rlp";
import { formatData, type Hash } from "./hex.ts";
import { keccak256Hex } from "./keccak.ts";
import { concatBytes } from "./rlp.ts";
import {
  type AccessListEntry,
  type AccessListTransaction,
  type Authorization,
  type BlobTransaction,
  DEPOSIT_TYPE,
  type DepositTransaction,
  type DynamicFeeTransaction,
  InvalidTransaction,
  type LegacyTransaction,
  type SetCodeTransaction,
  type Signature,
  type Transaction,
  UnknownTransactionType,
} from "./transaction.ts";

type RlpItem = Uint8Array | RlpItem[];

/** Decodes an RLP list. Throws InvalidTransaction for other bytes. */
const decodeList = (bytes: Uint8Array): RlpItem[] => {
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
const createReader = (items: readonly RlpItem[], length: number) => {
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

type Reader = ReturnType<typeof createReader>;

/** EIP-2718 */
const MAX_TYPE = 0x7f;

/**
 * Parses a transaction from its EIP-2718 bytes, or a blob transaction from its network form with blobs.
 * Throws InvalidTransaction; UnknownTransactionType for a type that cannot be read, also for a post-exec transaction.
 */
export const parseTransaction = (raw: Uint8Array): Transaction => {
  const first = raw[0];
  if (first === undefined) {
    throw new InvalidTransaction("no bytes");
  }
  if (first >= 0xc0) {
    return parseLegacy(raw);
  }
  const parse = PARSERS.get(first);
  if (parse === undefined) {
    throw first > MAX_TYPE
      ? new InvalidTransaction(`${first} is no transaction type`)
      : new UnknownTransactionType(first);
  }
  return parse(raw, decodeList(raw.subarray(1)));
};

const rawAndHash = (raw: Uint8Array) => ({ raw, hash: keccak256Hex(raw) });

const readCall = (read: Reader) => ({ gas: read.uint64(), to: read.to(), value: read.number(), input: read.bytes() });

const readSignature = (read: Reader): { signature: Signature } => ({
  signature: { yParity: read.flag(), r: read.number(), s: read.number() },
});

const readHashes = (items: readonly RlpItem[]): Hash[] => {
  const read = createReader(items, items.length);
  return items.map(() => read.hash());
};

const readAccessList = (read: Reader): { accessList: AccessListEntry[] } => ({
  accessList: read.list().map((item) => {
    const entry = createReader(Array.isArray(item) ? item : [], 2);
    return { address: entry.address(), storageKeys: readHashes(entry.list()) };
  }),
});

const readAuthorizations = (read: Reader): { authorizationList: Authorization[] } => ({
  authorizationList: read.list().map((item) => {
    const entry = createReader(Array.isArray(item) ? item : [], 6);
    return {
      chainId: entry.number(),
      address: entry.address(),
      nonce: entry.uint64(),
      yParity: entry.number(1),
      r: entry.number(),
      s: entry.number(),
    };
  }),
});

const readDynamicFee = (read: Reader) => ({
  chainId: read.number(),
  nonce: read.uint64(),
  maxPriorityFeePerGas: read.number(),
  maxFeePerGas: read.number(),
  ...readCall(read),
  ...readAccessList(read),
});

const parseLegacy = (raw: Uint8Array): LegacyTransaction => {
  const read = createReader(decodeList(raw), 9);
  const nonce = read.uint64();
  const gasPrice = read.number();
  const call = readCall(read);
  const v = read.number();
  // EIP-155: v = 35 + 2 * chain id + parity. Before EIP-155, v is 27 or 28.
  const isProtected = v >= 35n;
  if (!isProtected && v !== 27n && v !== 28n) {
    throw new InvalidTransaction(`v is ${v}`);
  }
  const chainId = isProtected ? (v - 35n) / 2n : undefined;
  const signature: Signature = { yParity: (v - 27n) % 2n === 0n ? 0 : 1, r: read.number(), s: read.number() };
  return { type: 0, ...rawAndHash(raw), nonce, gasPrice, ...call, v, chainId, signature };
};

const parseAccessList = (raw: Uint8Array, items: readonly RlpItem[]): AccessListTransaction => {
  const read = createReader(items, 11);
  return {
    type: 1,
    ...rawAndHash(raw),
    chainId: read.number(),
    nonce: read.uint64(),
    gasPrice: read.number(),
    ...readCall(read),
    ...readAccessList(read),
    ...readSignature(read),
  };
};

const parseDynamicFee = (raw: Uint8Array, items: readonly RlpItem[]): DynamicFeeTransaction => {
  const read = createReader(items, 12);
  return { type: 2, ...rawAndHash(raw), ...readDynamicFee(read), ...readSignature(read) };
};

const parseBlob = (raw: Uint8Array, items: readonly RlpItem[]): BlobTransaction => {
  const [inner] = items;
  // The network form is [transaction, ...blobs and proofs] (EIP-4844, EIP-7594). The hash is of the transaction alone.
  if (Array.isArray(inner)) {
    return parseBlob(concatBytes([Uint8Array.of(3), RLP.encode(inner)]), inner);
  }
  const read = createReader(items, 14);
  return {
    type: 3,
    ...rawAndHash(raw),
    ...readDynamicFee(read),
    maxFeePerBlobGas: read.number(),
    blobVersionedHashes: readHashes(read.list()),
    ...readSignature(read),
  };
};

const parseSetCode = (raw: Uint8Array, items: readonly RlpItem[]): SetCodeTransaction => {
  const read = createReader(items, 13);
  return { type: 4, ...rawAndHash(raw), ...readDynamicFee(read), ...readAuthorizations(read), ...readSignature(read) };
};

const parseDeposit = (raw: Uint8Array, items: readonly RlpItem[]): DepositTransaction => {
  const read = createReader(items, 8);
  return {
    type: DEPOSIT_TYPE,
    ...rawAndHash(raw),
    sourceHash: read.hash(),
    from: read.address(),
    to: read.to(),
    mint: read.number(),
    value: read.number(),
    gas: read.uint64(),
    isSystemTx: read.flag() === 1,
    input: read.bytes(),
  };
};

const PARSERS = new Map<number, (raw: Uint8Array, items: readonly RlpItem[]) => Transaction>([
  [1, parseAccessList],
  [2, parseDynamicFee],
  [3, parseBlob],
  [4, parseSetCode],
  [DEPOSIT_TYPE, parseDeposit],
]);
