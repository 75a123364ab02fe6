import type { LogFilter } from "../ethereum/logFilter.ts";
import { CLOSE_BRACKET, QUOTE } from "../json/jsonBytes.ts";
import type { ScannedLog } from "./scanLogs.ts";

const TOPICS = Buffer.from('"topics"');

/** Counts the topics by their quotes: a hex string has two, and no other byte of the list is a quote. */
const countTopics = ({ text, start, end }: ScannedLog): number => {
  const key = text.indexOf(TOPICS, start);
  if (key === -1 || key >= end) {
    return 0;
  }
  let quotes = 0;
  for (let at = key + TOPICS.length; at < end && text[at] !== CLOSE_BRACKET; at++) {
    if (text[at] === QUOTE) {
      quotes++;
    }
  }
  return quotes / 2;
};

/**
 * Removes logs with fewer topics than the filter has positions. geth counts empty positions at the end of a filter.
 * Reth, anvil and some proxies ignore them. If the last position has values, every log has enough topics, and none is read.
 */
export const dropShortLogs = ({ topics }: LogFilter, logs: readonly ScannedLog[]): readonly ScannedLog[] =>
  topics.at(-1)?.length === 0 ? logs.filter((log) => countTopics(log) >= topics.length) : logs;

/** Returns the filter without empty positions at its end. Nodes that ignore them match this filter. */
export const withoutEmptyTail = (filter: LogFilter): LogFilter => ({
  ...filter,
  topics: filter.topics.slice(0, filter.topics.findLastIndex((position) => position.length > 0) + 1),
});
