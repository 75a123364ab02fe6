import type { BlockRange } from "../core/logRange.ts";
import type { Node } from "../core/node.ts";
import type { Hash } from "../ethereum/hex.ts";
import type { LogFilter } from "../ethereum/logFilter.ts";
import { splitRange } from "./plan.ts";
import type { TooLarge } from "./rangeTooLarge.ts";

/** One request for logs, or what becomes of it when it is too large for one. */
export interface FetchRange extends BlockRange {
  readonly filter: LogFilter;
  readonly final: boolean;
  /** Set where one block is asked for by its hash; `from` and `to` are then its number. */
  readonly blockHash?: Hash;
  /** The block was asked for as part of a range: it is not verified alone. */
  readonly isRecheck?: true;
  /** The only node to ask. */
  readonly node?: Node;
}

export const blocksOf = ({ from, to }: BlockRange): number => Number(to - from) + 1;

const chunk = <T>(values: readonly T[], maxLength: number): T[][] => {
  const count = Math.ceil(values.length / maxLength);
  const at = (part: number) => Math.floor((values.length * part) / count);
  return Array.from({ length: count }, (_, part) => values.slice(at(part), at(part + 1)));
};

const cutAddresses = (job: FetchRange, max: number): FetchRange[] =>
  job.filter.addresses.length <= max
    ? [job]
    : chunk(job.filter.addresses, max).map((addresses) => ({ ...job, filter: { ...job.filter, addresses } }));

/** Cuts the first position that has more topics than `max`. */
const cutTopics = (job: FetchRange, max: number): FetchRange[] => {
  const position = job.filter.topics.findIndex(({ length }) => length > max);
  const topics = job.filter.topics[position];
  if (topics === undefined) return [job];
  return chunk(topics, max).map((part) => ({
    ...job,
    filter: { ...job.filter, topics: job.filter.topics.with(position, part) },
  }));
};

export interface FetchRangeLimits {
  readonly blocks: number;
  readonly addresses: number;
  readonly topics: number;
}

/** The parts of a job that fit a node's learned limits; the job itself where it does. */
export const fitFetchRange = (
  job: FetchRange,
  { blocks, addresses, topics }: FetchRangeLimits,
): readonly FetchRange[] => {
  if (job.blockHash === undefined && blocksOf(job) > blocks) {
    return splitRange(job, blocks).map((range) => ({ ...job, ...range }));
  }
  const parts = cutAddresses(job, addresses);
  return parts.length > 1 ? parts : cutTopics(job, topics);
};

export type Dimension = "blocks" | "addresses" | "topics";

const halveLists = (
  job: FetchRange,
  first: "addresses" | "topics",
): readonly [Dimension, readonly FetchRange[]] | undefined => {
  const addresses = job.filter.addresses.length;
  const longest = Math.max(0, ...job.filter.topics.map(({ length }) => length));
  const byAddresses = () => addresses > 1 && (["addresses", cutAddresses(job, Math.ceil(addresses / 2))] as const);
  const byTopics = () => longest > 1 && (["topics", cutTopics(job, Math.ceil(longest / 2))] as const);
  const found = first === "addresses" ? byAddresses() || byTopics() : byTopics() || byAddresses();
  return found || undefined;
};

/**
 * Splits a fetch range that a node rejected as too large: by blocks, then by addresses, then by the topics of a position. If the
 * node's error names lists, it splits those first. A limit of the node is used only if it makes the range smaller.
 * Returns `undefined` if the range cannot be split.
 */
export const halveFetchRange = (
  job: FetchRange,
  { what, limit, range }: TooLarge,
): readonly [Dimension, readonly FetchRange[]] | undefined => {
  if (what === "addresses" || what === "topics") {
    if (limit !== undefined && limit < job.filter[what].length && what === "addresses") {
      return [what, cutAddresses(job, limit)];
    }
    return halveLists(job, what);
  }
  const blocks = blocksOf(job);
  if (blocks === 1 || job.blockHash !== undefined) return halveLists(job, "addresses");
  if (range !== undefined && range.from === job.from && range.to >= job.from && range.to < job.to) {
    return [
      "blocks",
      [
        { ...job, to: range.to },
        { ...job, from: range.to + 1n },
      ],
    ];
  }
  const maxBlocks = what === "blocks" && limit !== undefined && limit < blocks ? limit : Math.ceil(blocks / 2);
  return ["blocks", splitRange(job, maxBlocks).map((part) => ({ ...job, ...part }))];
};
