import type { Body } from "../core/view.ts";
import type { MatchedLog } from "./filterIndex.ts";

/** A log that is delivered to subscriptions. */
export interface SubscribedLog extends MatchedLog {
  /** The number of its block. */
  readonly number: bigint;
  /** Identifies the log among all logs of blocks with that number (see logKey). */
  readonly key: string;
  body(removed: boolean): Body;
}

const encoder = new TextEncoder();
const decoder = new TextDecoder();

type RpcLog = Readonly<Record<string, unknown>> & { readonly topics: readonly unknown[] };

const isLog = (value: unknown): value is RpcLog =>
  typeof value === "object" && value !== null && "topics" in value && Array.isArray(value.topics);

const lowerCase = (value: unknown): string => String(value).toLowerCase();

/** Creates the key of a log from its transaction and its index in the block. */
export const logKey = (transactionHash: unknown, logIndex: unknown): string =>
  `${lowerCase(transactionHash)}:${Number(logIndex)}`;

/** Parses the fields of a receipt's logs that filters compare. */
export const matchedLogs = (logs: unknown): readonly MatchedLog[] =>
  Array.isArray(logs) ? logs.filter(isLog).map(matchedLog) : [];

const matchedLog = (log: RpcLog): MatchedLog => ({
  address: lowerCase(log.address),
  topics: log.topics.map(lowerCase),
});

const parseLog = (value: unknown): SubscribedLog[] => {
  if (!isLog(value)) {
    return [];
  }
  return [
    {
      ...matchedLog(value),
      number: BigInt(String(value.blockNumber)),
      key: logKey(value.transactionHash, value.logIndex),
      body: (removed) => encoder.encode(JSON.stringify({ ...value, removed })),
    },
  ];
};

/** Parses the JSON text of an eth_getLogs result. */
export const parseLogs = (text: Uint8Array): readonly SubscribedLog[] => {
  const values: unknown = JSON.parse(decoder.decode(text));
  return Array.isArray(values) ? values.flatMap(parseLog) : [];
};
