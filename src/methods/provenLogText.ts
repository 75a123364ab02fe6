import type { BlockId } from "../core/heads.ts";
import { formatQuantity } from "../ethereum/hex.ts";
import { type LogFilter, matchesLog } from "../ethereum/logFilter.ts";
import { type Fields, QUOTE } from "../json/jsonBytes.ts";

// The text of a log begins with its address and its topics, at places that do not change, so that a filter parses nothing.

const ADDRESS_AT = '{"address":"'.length;
const ADDRESS_LENGTH = 42;
const TOPICS_AT = ADDRESS_AT + ADDRESS_LENGTH + '","topics":['.length;
const TOPIC_LENGTH = 66;
/** Two quotes and a comma. */
const BETWEEN_TOPICS = 3;

/** What a log takes from its block. */
interface LogBlock {
  readonly block: BlockId;
  readonly timestamp: unknown;
  /** The hash of a transaction is not under the receipts root. So it is taken from the block. */
  readonly transactionHash: unknown;
}

const lower = (value: unknown): string => String(value).toLowerCase();

/** Returns the JSON text of a log of a verified receipt. */
export const formatLogText = (log: Fields, { block, timestamp, transactionHash }: LogBlock): string =>
  JSON.stringify({
    address: lower(log.address),
    topics: Array.isArray(log.topics) ? log.topics.map(lower) : [],
    data: log.data,
    blockNumber: formatQuantity(block.number),
    transactionHash,
    transactionIndex: log.transactionIndex,
    blockHash: block.hash,
    blockTimestamp: timestamp,
    logIndex: log.logIndex,
    removed: false,
  });

/** Whether the filter matches the log with that text. */
export const matchesLogText = (filter: LogFilter, text: Buffer): boolean => {
  const topics: string[] = [];
  for (let at = TOPICS_AT; text[at] === QUOTE; at += TOPIC_LENGTH + BETWEEN_TOPICS) {
    topics.push(text.toString("latin1", at + 1, at + 1 + TOPIC_LENGTH));
  }
  return matchesLog(filter, { address: text.toString("latin1", ADDRESS_AT, ADDRESS_AT + ADDRESS_LENGTH), topics });
};
