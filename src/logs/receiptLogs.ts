import type { LogFilter } from "../ethereum/logFilter.ts";
import { asBuffer, BACKSLASH } from "../json/jsonBytes.ts";
import { elements, members } from "../json/members.ts";
import { createLogMatcher } from "./requestLogs.ts";
import { type ScannedLog, scanLogs, withoutZeroTimestamps } from "./scanLogs.ts";

/** Of two equal members, the last one counts, as for the parser that verified the receipts. */
const logsOf = (receipt: Uint8Array): readonly ScannedLog[] => {
  let logs: Uint8Array | undefined;
  for (const { key, value } of members(receipt)) {
    logs = key === "logs" ? value : logs;
  }
  return logs === undefined ? [] : scanLogs(logs);
};

/**
 * Returns the logs of a block's verified receipts, given as JSON text, that the filter matches. Undefined if the text has an escape:
 * a scan would not read such a member, and the parser that verified the receipts did. Undefined also if the node says that a log is
 * not canonical any more, which no root verifies.
 */
export const logsOfReceipts = (receipts: Uint8Array, filter: LogFilter): readonly ScannedLog[] | undefined => {
  if (asBuffer(receipts).includes(BACKSLASH)) {
    return undefined;
  }
  const logs = [...elements(withoutZeroTimestamps(receipts))].flatMap(logsOf);
  return logs.some(({ isRemoved }) => isRemoved) ? undefined : logs.filter(createLogMatcher(filter));
};
