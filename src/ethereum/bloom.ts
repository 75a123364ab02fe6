import { type Address, type Data, type Hash, parseData } from "./hex.ts";
import { keccak256 } from "./keccak.ts";
import type { LogFilter } from "./logFilter.ts";

const BLOOM_BYTES = 256;

const MAX_REMEMBERED = 32_768;
/** Addresses and topics repeat, and hashing one costs more than all the rest. */
const remembered = new Map<Data, readonly [number, number, number]>();

/** The three bits of a value, as positions from the last byte's lowest bit. Yellow Paper, 4.3.1. */
const bitsOf = (value: Data): readonly [number, number, number] => {
  const known = remembered.get(value);
  if (known !== undefined) return known;
  const hash = keccak256(parseData(value));
  const bit = (at: number) => (((hash[at] ?? 0) << 8) | (hash[at + 1] ?? 0)) & 2047;
  const bits = [bit(0), bit(2), bit(4)] as const;
  if (remembered.size >= MAX_REMEMBERED) remembered.clear();
  remembered.set(value, bits);
  return bits;
};

export const createBloom = (): Uint8Array => new Uint8Array(BLOOM_BYTES);

export const addToBloom = (bloom: Uint8Array, value: Data): void => {
  for (const bit of bitsOf(value)) {
    const at = BLOOM_BYTES - 1 - (bit >> 3);
    bloom[at] = (bloom[at] ?? 0) | (1 << (bit & 7));
  }
};

export const bloomContains = (bloom: Uint8Array, value: Data): boolean =>
  bitsOf(value).every((bit) => ((bloom[BLOOM_BYTES - 1 - (bit >> 3)] ?? 0) & (1 << (bit & 7))) !== 0);

/** Adds all of `other` to `bloom`. */
export const orBloom = (bloom: Uint8Array, other: Uint8Array): void => {
  for (let at = 0; at < BLOOM_BYTES; at++) bloom[at] = (bloom[at] ?? 0) | (other[at] ?? 0);
};

export const bloomOfLogs = (
  logs: Iterable<{ readonly address: Address; readonly topics: readonly Hash[] }>,
): Uint8Array => {
  const bloom = createBloom();
  for (const log of logs) {
    addToBloom(bloom, log.address);
    for (const topic of log.topics) addToBloom(bloom, topic);
  }
  return bloom;
};

/** False only where no log of the block can match. */
export const bloomAdmits = (bloom: Uint8Array, filter: LogFilter): boolean =>
  admitsOneOf(bloom, filter.addresses) && filter.topics.every((position) => admitsOneOf(bloom, position));

const admitsOneOf = (bloom: Uint8Array, values: readonly Data[]): boolean =>
  values.length === 0 || values.some((value) => bloomContains(bloom, value));
