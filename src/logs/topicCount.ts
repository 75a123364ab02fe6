import type { LogFilter } from "../ethereum/logFilter.ts";
import type { ScannedLog } from "./scanLogs.ts";

const TOPICS = Buffer.from('"topics"');
const QUOTE = 0x22;
const CLOSE_LIST = 0x5d;

/** Topics are strings of hex: each has two quotes, and no other byte of the list is one. */
const countTopics = ({ text, start, end }: ScannedLog): number => {
  const key = text.indexOf(TOPICS, start);
  if (key === -1 || key >= end) return 0;
  let quotes = 0;
  for (let at = key + TOPICS.length; at < end && text[at] !== CLOSE_LIST; at++) if (text[at] === QUOTE) quotes++;
  return quotes / 2;
};

/**
 * Removes logs with fewer topics than the filter has positions. geth counts empty positions at the end of a filter.
 * Reth, anvil and some proxies ignore them. If the last position has values, every log has enough topics, and none is read.
 */
export const dropShortLogs = ({ topics }: LogFilter, logs: readonly ScannedLog[]): readonly ScannedLog[] =>
  topics.at(-1)?.length === 0 ? logs.filter((log) => countTopics(log) >= topics.length) : logs;

/** The filter without empty positions at its end: what a node that ignores them matches. */
export const withoutEmptyTail = (filter: LogFilter): LogFilter => ({
  ...filter,
  topics: filter.topics.slice(0, filter.topics.findLastIndex((position) => position.length > 0) + 1),
});
