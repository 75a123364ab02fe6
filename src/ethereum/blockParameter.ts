import { type Hash, isHash, isQuantity, lowerPrefix } from "./hex.ts";
import { InvalidValueError } from "./invalidValueError.ts";

export type BlockTag = "latest" | "pending" | "safe" | "finalized" | "earliest";

/** A block in a request: tag, number, or hash (EIP-1898). */
export type BlockParameter =
  | { readonly tag: BlockTag }
  | { readonly number: bigint }
  | { readonly hash: Hash; readonly requireCanonical: boolean };

const TAGS: ReadonlySet<unknown> = new Set(["latest", "pending", "safe", "finalized", "earliest"]);
const isTag = (value: unknown): value is BlockTag => TAGS.has(value);

/** Returns a tag of the execution API, or `undefined`. `unsafe`, which OP-stack nodes also accept, is `latest`. */
export const parseBlockTag = (value: unknown): BlockTag | undefined => {
  if (value === "unsafe") {
    return "latest";
  }
  return isTag(value) ? value : undefined;
};
const MAX_NUMBER = 2n ** 63n - 1n;

/** Parses a block number up to 2^63 - 1, the limit of geth. Accepts leading zeros (docs/answers.md, Parameters). The error has `name`. */
const parseBlockNumber = (value: unknown, name: string): bigint => {
  if (typeof value !== "string") {
    throw new InvalidValueError(`invalid ${name}: want a hex string or a block tag`);
  }
  const hex = lowerPrefix(value);
  if (!/^0x/i.test(value)) {
    throw new InvalidValueError(`invalid ${name}: hex string without 0x prefix`);
  }
  if (!isQuantity(hex)) {
    throw new InvalidValueError(`invalid ${name}: invalid hex string`);
  }
  const number = BigInt(hex);
  if (number > MAX_NUMBER) {
    throw new InvalidValueError(`invalid ${name}: block number larger than int64`);
  }
  return number;
};

export const parseBlockNumberOrTag = (value: unknown, name: string): BlockParameter => {
  const tag = parseBlockTag(value);
  return tag === undefined ? { number: parseBlockNumber(value, name) } : { tag };
};

/** Parses a block parameter. Accepts a bare hash of 32 bytes, like geth and reth, and the objects of EIP-1898. */
export const parseBlockNumberOrTagOrHash = (value: unknown, name: string): BlockParameter => {
  const bareHash = lowerPrefix(value);
  if (isHash(bareHash)) {
    return { hash: lower(bareHash), requireCanonical: false };
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    return parseBlockNumberOrTag(value, name);
  }
  const fields: { [key: string]: unknown } = { ...value };
  // For geth and its clients, null is the same as a missing field.
  const [blockHash, blockNumber, requireCanonical] = [
    fields.blockHash ?? undefined,
    fields.blockNumber ?? undefined,
    fields.requireCanonical ?? undefined,
  ];
  if (blockHash !== undefined && blockNumber !== undefined) {
    throw new InvalidValueError(
      `invalid ${name}: cannot specify both blockHash and blockNumber, choose one or the other`,
    );
  }
  if (requireCanonical !== undefined && typeof requireCanonical !== "boolean") {
    throw new InvalidValueError(`invalid ${name}: requireCanonical must be a boolean`);
  }
  if (blockNumber !== undefined) {
    return parseBlockNumberOrTag(blockNumber, `${name}.blockNumber`);
  }
  const hash = lowerPrefix(blockHash);
  if (!isHash(hash)) {
    throw new InvalidValueError(`invalid ${name}: blockHash must be 32 bytes of hex`);
  }
  return { hash: lower(hash), requireCanonical: requireCanonical === true };
};

const lower = (hash: Hash): Hash => `0x${hash.slice(2).toLowerCase()}`;
