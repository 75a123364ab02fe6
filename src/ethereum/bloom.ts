import { type Address, type Data, type Hash, parseData } from "./hex.ts";
import { keccak256 } from "./keccak.ts";
import type { LogFilter } from "./logFilter.ts";

export const BLOOM_BYTES = 256;

/** Some 150 bytes each. */
const MAX_MEMOIZED = 2_048;
/** Memoizes a pure function: addresses and topics repeat, and their hash costs more than the rest of this file. */
const memoizedBits = new Map<Data, readonly [number, number, number]>();

/** Returns the three bits of a value, as positions from the lowest bit of the last byte. Source: Yellow Paper, 4.3.1. */
const bitsOf = (value: Data): readonly [number, number, number] => {
  const memoized = memoizedBits.get(value);
  if (memoized !== undefined) {
    return memoized;
  }
  const hash = keccak256(parseData(value));
  const bit = (offset: number) => (((hash[offset] ?? 0) << 8) | (hash[offset + 1] ?? 0)) & 2047;
  const bits = [bit(0), bit(2), bit(4)] as const;
  if (memoizedBits.size >= MAX_MEMOIZED) {
    memoizedBits.clear();
  }
  memoizedBits.set(value, bits);
  return bits;
};

/** Returns an empty bloom, 256 bytes. */
export const createBloom = (): Uint8Array => new Uint8Array(BLOOM_BYTES);

/** Sets the bits of an address or a topic in `bloom`. */
export const addToBloom = (bloom: Uint8Array, value: Data): void => {
  for (const bit of bitsOf(value)) {
    const index = BLOOM_BYTES - 1 - (bit >> 3);
    bloom[index] = (bloom[index] ?? 0) | (1 << (bit & 7));
  }
};

/** Reports whether `bloom` may contain an address or a topic. `false` is certain. */
export const bloomContains = (bloom: Uint8Array, value: Data): boolean =>
  bitsOf(value).every((bit) => ((bloom[BLOOM_BYTES - 1 - (bit >> 3)] ?? 0) & (1 << (bit & 7))) !== 0);

/** Adds all bits of `other` to `bloom`. */
export const orBloom = (bloom: Uint8Array, other: Uint8Array): void => {
  for (let index = 0; index < BLOOM_BYTES; index++) {
    bloom[index] = (bloom[index] ?? 0) | (other[index] ?? 0);
  }
};

/** Reports whether `bloom` has no bit that `other` lacks. */
export const isBloomWithin = (bloom: Uint8Array, other: Uint8Array): boolean =>
  bloom.every((byte, index) => (byte & ~(other[index] ?? 0)) === 0);

/** Returns the bloom of the addresses and topics of `logs`. */
export const bloomOfLogs = (
  logs: Iterable<{ readonly address: Address; readonly topics: readonly Hash[] }>,
): Uint8Array => {
  const bloom = createBloom();
  for (const log of logs) {
    addToBloom(bloom, log.address);
    for (const topic of log.topics) {
      addToBloom(bloom, topic);
    }
  }
  return bloom;
};

/** Reports whether a log of the block may match the filter. `false` is certain. */
export const bloomAdmits = (bloom: Uint8Array, filter: LogFilter): boolean =>
  admitsOneOf(bloom, filter.addresses) && filter.topics.every((position) => admitsOneOf(bloom, position));

const admitsOneOf = (bloom: Uint8Array, values: readonly Data[]): boolean =>
  values.length === 0 || values.some((value) => bloomContains(bloom, value));
