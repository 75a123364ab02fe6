import { NodeError, type NodeErrorKind } from "../../core/node.ts";
import {
  type Address,
  type Data,
  type Hash,
  isData,
  isHash,
  isQuantity,
  parseData,
  ZERO_ADDRESS,
  ZERO_HASH,
} from "../../ethereum/hex.ts";
import { EMPTY_CODE_HASH } from "../../ethereum/keccak.ts";
import { type Call, createCall } from "../../jsonrpc/call.ts";
import { unavailable } from "../../jsonrpc/rpcError.ts";
import type { StateField, StateKey } from "../stateKey.ts";
import { codeDigits, ZERO_VALUE } from "../stateKey.ts";

const DIGITS = 64;

const METHODS: Readonly<Record<StateField, string>> = {
  balance: "eth_getBalance",
  nonce: "eth_getTransactionCount",
  code: "eth_getCode",
  slot: "eth_getStorageAt",
};

/** Returns the method that reads the value. */
export const methodOf = ({ field }: StateKey): string => METHODS[field];

/** Creates the call that reads one value after a block. */
export const singleCall = (key: StateKey, block: Hash): Call =>
  createCall(methodOf(key), [key.address, ...(key.slot === undefined ? [] : [key.slot]), { blockHash: block }]);

/** Parses a result: 64 digits of hex, of a code its hash, and zero for no code. Undefined: it has another form. */
export const parseSingle = ({ field }: Pick<StateKey, "field">, result: unknown): string | undefined => {
  if (field === "code") {
    return isData(result) ? codeDigits(parseData(result)) : undefined;
  }
  return digitsOf(result);
};

const digitsOf = (value: unknown): string | undefined =>
  isQuantity(value) && value.length <= 2 + DIGITS ? value.slice(2).toLowerCase().padStart(DIGITS, "0") : undefined;

/** Creates the call that reads a block by number. */
export const blockHashCall = (number: bigint): Call =>
  createCall("eth_getBlockByNumber", [`0x${number.toString(16)}`, false]);

/** Parses the block hash from the result of `blockHashCall`. Throws if it has another form, or is zero: the block exists. */
export const parseBlockHash = (value: unknown): Hash => {
  if (value instanceof Error) {
    throw value;
  }
  const hash = typeof value === "object" && value !== null ? Reflect.get(value, "hash") : undefined;
  if (!isHash(hash) || hash === ZERO_HASH) {
    throw unavailable("a node returned an invalid block");
  }
  return hash;
};

/** Creates code that replaces each word of its input by the result of one opcode (docs/reference/state.md, Bulk reads). */
const readerCode = (opcode: string): Data => `0x5f5b368110156014578035${opcode}81526020016001565b365ff3`;

/** No opcode reads a nonce. */
const READER_CODES: Partial<Record<StateField, Data>> = {
  slot: readerCode("54"),
  balance: readerCode("31"),
  code: readerCode("3f"),
};

/**
 * Calls one account after the other, and returns their outputs as one. Its input has for each account the address,
 * the length of the account's input, and that input. An output is as long as its input.
 */
const DISPATCHER_CODE: Data =
  "0x5f5f5b368110600c57505ff35b8060200135808260400184378083818185355afa1560305780920191016040016002565b5f5ffd";

/** Accounts that do not exist, for the codes of a call. */
const DISPATCHER: Address = "0xf04eba7f04eba7f04eba7f04eba7f04eba700001";
const ACCOUNT_READER: Address = "0xf04eba7f04eba7f04eba7f04eba7f04eba700002";

/** Keys of one call. 500 slots take 1.1 million gas; geth proves up to 1,024. */
export const MAX_KEYS = 500;
const WORD_BYTES = 32;
const NO_CODE_HASH = EMPTY_CODE_HASH.slice(2);

/** A call of which one result has the values of several keys. */
export interface SharedCall {
  readonly call: Call;
  readonly keys: readonly StateKey[];
  /** Returns 64 digits of hex for each key, for a code its hash, and zero for no code. Undefined: the result has another form. */
  parse(result: unknown): ReadonlyMap<StateKey, string> | undefined;
}

const partsOf = (keys: readonly StateKey[]): (readonly StateKey[])[] =>
  Array.from({ length: Math.ceil(keys.length / MAX_KEYS) }, (_, index) =>
    keys.slice(index * MAX_KEYS, (index + 1) * MAX_KEYS),
  );

const word = (value: string): string => value.slice(2).padStart(DIGITS, "0");
const lengthWord = (words: number): string => (words * WORD_BYTES).toString(16).padStart(DIGITS, "0");
const wordOfKey = ({ field, address, slot }: StateKey): string => word(field === "slot" ? (slot ?? "0x") : address);
const targetOf = ({ field, address }: StateKey): Address => (field === "slot" ? address : ACCOUNT_READER);

/** Some chains have precompiles above 0xff, and some at 0x01...00 to 0x03...ff. */
const PRECOMPILE = /^0x0[0-9a-f]0{34}[0-9a-f]{4}$/i;

/**
 * Whether a bulk call can read the key. A precompile runs instead of the code that replaces it,
 * and the codes of the call hide those of its own accounts. Besu gives the sender of a call, the zero address, a balance.
 */
export const isBulkReadable = ({ address, field }: StateKey): boolean =>
  (field !== "slot" || !PRECOMPILE.test(address)) &&
  (field === "balance"
    ? address !== ZERO_ADDRESS
    : ![DISPATCHER, ACCOUNT_READER].includes(address.toLowerCase() as Address));

/** Creates one eth_call. Each account has keys of one field. */
const bulkCall = (unordered: readonly StateKey[], block: Hash): SharedCall => {
  const groups = Map.groupBy(unordered, targetOf);
  const input = [...groups].map(([target, own]) => word(target) + lengthWord(own.length) + own.map(wordOfKey).join(""));
  const overrides = [...groups].map(([target, own]) => [target, { code: READER_CODES[own[0]?.field ?? "slot"] }]);
  const keys = [...groups.values()].flat();
  return {
    call: createCall("eth_call", [
      { to: DISPATCHER, data: `0x${input.join("")}` },
      { blockHash: block },
      { ...Object.fromEntries(overrides), [DISPATCHER]: { code: DISPATCHER_CODE } },
    ]),
    keys,
    parse: (result) => parseBulkResult(keys, result),
  };
};

/** Creates the calls that read slots, balances and hashes of codes. A call that reads hashes overrides none of these codes. */
export const bulkCalls = (keys: readonly StateKey[], block: Hash): readonly SharedCall[] =>
  [keys.filter(({ field }) => field !== "code"), keys.filter(({ field }) => field === "code")]
    .flatMap(partsOf)
    .map((part) => bulkCall(part, block));

/** Parses the result of a call. Undefined if the node ignored the overrides. */
const parseBulkResult = (keys: readonly StateKey[], result: unknown): ReadonlyMap<StateKey, string> | undefined => {
  if (!isData(result) || result.length !== 2 + keys.length * DIGITS) {
    return undefined;
  }
  const digits = result.slice(2).toLowerCase();
  return new Map(
    keys.map((key, index) => {
      const value = digits.slice(index * DIGITS, (index + 1) * DIGITS);
      return [key, key.field === "code" && value === NO_CODE_HASH ? ZERO_VALUE : value];
    }),
  );
};

/** Creates calls of eth_getProof, each of one account. */
export const proofCalls = (keys: readonly StateKey[], block: Hash): readonly SharedCall[] =>
  [...Map.groupBy(keys, ({ address }) => address)].flatMap(([address, own]) =>
    partsOf(own).map((part) => ({
      call: createCall("eth_getProof", [address, part.flatMap(({ slot }) => slot ?? []), { blockHash: block }]),
      keys: part,
      parse: (result) => parseProof(part, result),
    })),
  );

const codeOf = (value: unknown): string | undefined => {
  if (!isHash(value)) {
    return undefined;
  }
  // Some nodes return zero for an account that does not exist.
  return value.toLowerCase() === EMPTY_CODE_HASH ? ZERO_VALUE : value.slice(2).toLowerCase();
};

const parseProof = (keys: readonly StateKey[], result: unknown): ReadonlyMap<StateKey, string> | undefined => {
  if (typeof result !== "object" || result === null) {
    return undefined;
  }
  const { balance, nonce, codeHash, storageProof } = result as Readonly<Record<string, unknown>>;
  const proofs: readonly unknown[] = Array.isArray(storageProof) ? storageProof : [];
  const values = new Map<StateKey, string>();
  let slots = 0;
  for (const key of keys) {
    const value =
      key.field === "slot"
        ? digitsOf((proofs[slots++] as { readonly value?: unknown } | undefined)?.value)
        : { balance: digitsOf(balance), nonce: digitsOf(nonce), code: codeOf(codeHash) }[key.field];
    if (value === undefined) {
      return undefined;
    }
    values.set(key, value);
  }
  return values;
};

/** The errors of nodes that do not support a method, a parameter or the size of a call. Others say nothing about that. */
const UNSUPPORTED: ReadonlySet<NodeErrorKind> = new Set([
  "unsupportedMethod",
  "rejected",
  "revert",
  "executionFailed",
  "invalidParams",
  "tooLarge",
  "other",
]);

/** Whether an outcome that has not the values of all keys shows that the nodes do not support the call. */
export const isBulkUnsupported = (outcome: unknown): boolean =>
  !(outcome instanceof Error) || (outcome instanceof NodeError && UNSUPPORTED.has(outcome.kind));
