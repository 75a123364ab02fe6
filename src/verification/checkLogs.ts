import { bloomContains } from "../ethereum/bloom.ts";
import { isAddress, isHash } from "../ethereum/hex.ts";
import { type LogFilter, matchesLog } from "../ethereum/logFilter.ts";
import { asBuffer, type Fields, isFields } from "../json/jsonBytes.ts";
import { type Finding, failed, passed } from "./findings.ts";
import { bytesOf, dataOf, fieldsOf, ifWellFormed, isAbsent, isSame, listOf, numberOf } from "./jsonFields.ts";

const MEMBERS = ["blockHash", "transactionHash", "data"];
const NUMBERS = ["blockNumber", "transactionIndex", "logIndex"];

const isEqual = (log: Fields, expected: Fields): boolean => {
  const topics = listOf(log.topics);
  const expectedTopics = listOf(expected.topics);
  return (
    isSame(log.address, bytesOf(expected.address, 20)) &&
    (isAbsent(log.removed) || log.removed === false) &&
    topics.length === expectedTopics.length &&
    topics.every((topic, at) => isSame(topic, dataOf(expectedTopics[at]))) &&
    MEMBERS.every((name) => isSame(log[name], dataOf(expected[name]))) &&
    NUMBERS.every((name) => numberOf(log[name]) === numberOf(expected[name]))
  );
};

const matchesFilter = (log: Fields, filter: LogFilter): boolean =>
  matchesLog(filter, {
    address: dataOf(log.address).toLowerCase(),
    topics: listOf(log.topics).map((topic) => dataOf(topic).toLowerCase()),
  });

/** The checks of logs. */
export interface LogsChecks {
  readonly kind: "logs";
  readonly filter: LogFilter;
  readonly blooms: ReadonlyMap<string, Uint8Array>;
  /** JSON text of the block's verified receipts, if all logs are of one block. */
  readonly receipts: Uint8Array | undefined;
}

/** Whether `logs` are exactly those logs of a block's verified receipts that match the filter. */
const areLogsOfReceipts = (logs: readonly unknown[], receipts: readonly unknown[], filter: LogFilter): boolean => {
  return ifWellFormed(() => {
    const expected = receipts
      .flatMap((receipt) => listOf(fieldsOf(receipt).logs).map(fieldsOf))
      .filter((log) => matchesFilter(log, filter));
    return logs.length === expected.length && expected.every((log, at) => isEqual(fieldsOf(logs[at]), log));
  }, false);
};

/** Whether each log is in the bloom of its block. Logs of blocks without a known bloom are not checked. */
const areLogsInBlooms = (logs: readonly unknown[], blooms: ReadonlyMap<string, Uint8Array>): boolean =>
  logs.every((item) => {
    const { blockHash, address, topics } = fieldsOf(item);
    const bloom = blooms.get(String(blockHash));
    if (bloom === undefined) {
      return true;
    }
    const words = [address, ...(Array.isArray(topics) ? topics : [undefined])];
    return words.every((word) => (isAddress(word) || isHash(word)) && bloomContains(bloom, word));
  });

/** Checks logs against the blooms of their blocks, or the receipts of their block. */
export const checkLogs = (list: readonly unknown[], { filter, blooms, receipts }: LogsChecks): readonly Finding[] => {
  const all: unknown = receipts === undefined ? undefined : JSON.parse(asBuffer(receipts).toString("latin1"));
  const areRight =
    list.every(isFields) &&
    areLogsInBlooms(list, blooms) &&
    (!Array.isArray(all) || areLogsOfReceipts(list, all, filter));
  return [areRight ? passed("logs") : failed("logs")];
};
