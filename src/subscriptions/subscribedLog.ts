import type { Body } from "../core/view.ts";
import type { MatchedLog } from "../ethereum/logIndex.ts";

/** One log on its way to subscriptions. */
export interface SubscribedLog extends MatchedLog {
  /** Its block's number. */
  readonly number: bigint;
  /** Tells it from any other log of blocks of that number. */
  readonly key: string;
  body(removed: boolean): Body;
}

const encoder = new TextEncoder();
const decoder = new TextDecoder();

type RpcLog = Readonly<Record<string, unknown>> & { readonly topics: readonly unknown[] };

const isLog = (value: unknown): value is RpcLog =>
  typeof value === "object" && value !== null && "topics" in value && Array.isArray(value.topics);

const lower = (value: unknown): string => String(value).toLowerCase();

export const logKey = (transactionHash: unknown, logIndex: unknown): string =>
  `${lower(transactionHash)}:${Number(logIndex)}`;

/** The part of a receipt's logs that filters look at. */
export const matchedLogs = (logs: unknown): readonly MatchedLog[] =>
  Array.isArray(logs) ? logs.filter(isLog).map(matchedLog) : [];

const matchedLog = (log: RpcLog): MatchedLog => ({ address: lower(log.address), topics: log.topics.map(lower) });

const parseLog = (value: unknown): SubscribedLog[] => {
  if (!isLog(value)) return [];
  return [
    {
      ...matchedLog(value),
      number: BigInt(String(value.blockNumber)),
      key: logKey(value.transactionHash, value.logIndex),
      body: (removed) => encoder.encode(JSON.stringify({ ...value, removed })),
    },
  ];
};

/** Logs as eth_getLogs gives them. */
export const parseLogs = (text: Uint8Array): readonly SubscribedLog[] => {
  const values: unknown = JSON.parse(decoder.decode(text));
  return Array.isArray(values) ? values.flatMap(parseLog) : [];
};
