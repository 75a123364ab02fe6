import type { LogFilter } from "../ethereum/logFilter.ts";
import { QUOTE } from "../json/jsonBytes.ts";
import type { ScannedLog } from "./scanLogs.ts";

const ADDRESS_LENGTH = 42;
const TOPIC_LENGTH = 66;
/** A topic with its quotes and the comma after it. */
const TOPIC_STEP = TOPIC_LENGTH + 3;

/** Returns the hex string of that length whose opening quote is at `at`, or undefined. */
const readHex = ({ text }: ScannedLog, at: number, length: number): string | undefined =>
  text[at] === QUOTE && text[at + length + 1] === QUOTE ? text.toString("latin1", at + 1, at + 1 + length) : undefined;

/** Reads the topics of compact JSON. Returns undefined if the list has another format. */
const readCompactTopics = (log: ScannedLog, count: number): string[] | undefined => {
  const topics: string[] = [];
  for (let index = 0; index < count; index++) {
    const topic = readHex(log, log.topics + 1 + index * TOPIC_STEP, TOPIC_LENGTH);
    if (topic === undefined) {
      return undefined;
    }
    topics.push(topic);
  }
  return topics;
};

const readTopics = (log: ScannedLog, count: number): readonly unknown[] => {
  const compact = readCompactTopics(log, count);
  if (compact !== undefined) {
    return compact;
  }
  const end = log.text.indexOf("]", log.topics);
  const topics: unknown = JSON.parse(log.text.toString("latin1", log.topics, end + 1));
  return Array.isArray(topics) ? topics : [];
};

const includesValue = (wanted: ReadonlySet<string>, value: unknown): boolean =>
  typeof value === "string" && (wanted.has(value) || wanted.has(value.toLowerCase()));

/** Creates the test whether a scanned log matches a filter. It reads only the members that the filter restricts. */
export const createLogMatcher = ({ addresses, topics }: LogFilter): ((log: ScannedLog) => boolean) => {
  const wantedAddresses = new Set<string>(addresses);
  const positions = topics.map((position) => new Set<string>(position));
  const hasTopics = (log: ScannedLog): boolean => {
    if (log.topics < 0) {
      return false;
    }
    const logTopics = readTopics(log, positions.length);
    return positions.every(
      (wanted, at) => at < logTopics.length && (wanted.size === 0 || includesValue(wanted, logTopics[at])),
    );
  };
  return (log) =>
    (wantedAddresses.size === 0 || includesValue(wantedAddresses, readHex(log, log.address, ADDRESS_LENGTH))) &&
    (positions.length === 0 || hasTopics(log));
};
