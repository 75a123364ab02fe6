import { type BlockTag, parseBlockTag } from "./blockParameter.ts";
import {
  type Address,
  formatQuantity,
  type Hash,
  type Hex,
  isAddress,
  isHash,
  isQuantity,
  lowerPrefix,
} from "./hex.ts";
import { InvalidValueError } from "./invalidValueError.ts";

export type BlockNumberOrTag = bigint | BlockTag;

/** The requested logs, in canonical form: lower case, sorted, without duplicates. An empty list matches any value. */
export interface LogFilter {
  readonly addresses: readonly Address[];
  /** By position. A log matches only if it has a topic for each position, including empty positions. */
  readonly topics: readonly (readonly Hash[])[];
}

/** The requested blocks. A missing bound is `undefined`, because its default depends on the other one. */
type LogBlocks =
  | { readonly blockHash: Hash }
  | { readonly fromBlock: BlockNumberOrTag | undefined; readonly toBlock: BlockNumberOrTag | undefined };

export interface LogQuery {
  readonly filter: LogFilter;
  readonly blocks: LogBlocks;
}

export interface LogFilterLimits {
  readonly maxAddresses: number;
  /** In one position. */
  readonly maxTopics: number;
}

/** An EVM log has at most four topics (LOG4). */
const MAX_TOPIC_POSITIONS = 4;
const MAX_BLOCK_NUMBER = 2n ** 64n - 1n;

const canonical = <T extends string>(values: readonly T[]): T[] => [...new Set(values)].sort();
const lower = (value: Hex): Hex => `0x${value.slice(2).toLowerCase()}`;

const parseBound = (value: unknown, name: string): BlockNumberOrTag | undefined => {
  if (value === undefined || value === null) {
    return undefined;
  }
  const tag = parseBlockTag(value);
  if (tag !== undefined) {
    return tag;
  }
  const hex = lowerPrefix(value);
  if (!isQuantity(hex)) {
    throw new InvalidValueError(`${name}: expected a hex number or a block tag`);
  }
  const number = BigInt(hex);
  if (number > MAX_BLOCK_NUMBER) {
    throw new InvalidValueError(`${name}: block number larger than 64 bits`);
  }
  return number;
};

const parseAddresses = (value: unknown, maxAddresses: number): Address[] => {
  if (value === undefined || value === null) {
    return [];
  }
  const values: readonly unknown[] = Array.isArray(value) ? value : [value];
  if (values.length > maxAddresses) {
    throw new InvalidValueError(`address: more than ${maxAddresses} addresses`);
  }
  const addresses = values.map((each) => {
    const hex = lowerPrefix(each);
    if (!isAddress(hex)) {
      throw new InvalidValueError("address: expected 20 bytes of hex, or a list of such");
    }
    return lower(hex);
  });
  return canonical(addresses);
};

const parsePosition = (value: unknown, position: number, maxTopics: number): Hash[] => {
  const values: readonly unknown[] = Array.isArray(value) ? value : [value];
  if (values.length > maxTopics) {
    throw new InvalidValueError(`topics[${position}]: more than ${maxTopics} topics`);
  }
  // In geth a null among alternatives makes the position match any topic.
  if (values.includes(null)) {
    return [];
  }
  const topics = values.map((each) => {
    const hex = lowerPrefix(each);
    if (!isHash(hex)) {
      throw new InvalidValueError(`topics[${position}]: expected null, 32 bytes of hex, or a list of such`);
    }
    return lower(hex);
  });
  return canonical(topics);
};

const parseTopics = (value: unknown, maxTopics: number): Hash[][] => {
  if (value === undefined || value === null) {
    return [];
  }
  if (!Array.isArray(value)) {
    throw new InvalidValueError("topics: expected a list");
  }
  if (value.length > MAX_TOPIC_POSITIONS) {
    throw new InvalidValueError(`topics: more than ${MAX_TOPIC_POSITIONS} positions`);
  }
  return value.map((each: unknown, position) => parsePosition(each, position, maxTopics));
};

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const parseBlocks = (value: Readonly<Record<string, unknown>>): LogBlocks => {
  const blockHash = lowerPrefix(value.blockHash);
  if (blockHash !== undefined && blockHash !== null) {
    if (!isHash(blockHash)) {
      throw new InvalidValueError("blockHash: expected 32 bytes of hex");
    }
    return { blockHash: lower(blockHash) };
  }
  return { fromBlock: parseBound(value.fromBlock, "fromBlock"), toBlock: parseBound(value.toBlock, "toBlock") };
};

/** Parses the client's filter object. A range beside `blockHash` is ignored. Throws InvalidValueError. Source: docs/methods.md, eth_getLogs. */
export const parseLogQuery = (value: unknown, limits: LogFilterLimits): LogQuery => {
  if (!isObject(value)) {
    throw new InvalidValueError("filter: expected an object");
  }
  return {
    blocks: parseBlocks(value),
    filter: {
      addresses: parseAddresses(value.address, limits.maxAddresses),
      topics: parseTopics(value.topics, limits.maxTopics),
    },
  };
};

const formatAlternatives = (values: readonly string[]) => (values.length === 1 ? values[0] : values);

/** Formats the filter object for nodes. A single address or topic is sent without a list, which every node accepts. */
export const formatLogFilter = (
  { addresses, topics }: LogFilter,
  blocks: { readonly blockHash: Hash } | { readonly from: bigint; readonly to: bigint },
): Readonly<Record<string, unknown>> => ({
  ...("blockHash" in blocks ? blocks : { fromBlock: formatQuantity(blocks.from), toBlock: formatQuantity(blocks.to) }),
  ...(addresses.length > 0 && { address: formatAlternatives(addresses) }),
  ...(topics.length > 0 && {
    topics: topics.map((position) => (position.length === 0 ? null : formatAlternatives(position))),
  }),
});

/** Removes the empty positions at the end, so that logs with fewer topics match too. Returns the same object if there are none. */
export const withoutWildcards = (filter: LogFilter): LogFilter => {
  const length = filter.topics.findLastIndex((position) => position.length > 0) + 1;
  return length === filter.topics.length ? filter : { ...filter, topics: filter.topics.slice(0, length) };
};

/** Returns a text that is equal for equal filters. */
export const canonicalLogFilter = ({ addresses, topics }: LogFilter): string => JSON.stringify([addresses, topics]);

/**
 * Whether the filter matches a log, whose address and topics must be in lower case. A log with fewer topics than the filter
 * has positions does not match (geth, eth/filters/filter.go, filterLogs).
 */
export const matchesLog = (
  { addresses, topics }: LogFilter,
  log: { readonly address: string; readonly topics: readonly string[] },
): boolean =>
  topics.length <= log.topics.length &&
  (addresses.length === 0 || addresses.some((address) => address === log.address)) &&
  topics.every((position, at) => position.length === 0 || position.some((each) => each === log.topics[at]));
