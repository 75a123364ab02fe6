import type { NodeError } from "../core/node.ts";
import type { FetchRange } from "./fetchRange.ts";
import { orderLogs } from "./mergeLogs.ts";
import { type ScannedLog, scanLogs } from "./scanLogs.ts";

/** The expectations of one response. */
export interface ExpectedLogs {
  readonly range: FetchRange;
  readonly matches: (log: ScannedLog) => boolean;
  /** Creates the error of a response that is not the requested one. */
  readonly createError: (message: string) => NodeError;
}

const isWithin = ({ from, to, blockHash }: FetchRange, logs: readonly ScannedLog[]): boolean =>
  blockHash === undefined
    ? logs.every(({ block }) => block >= from && block <= to)
    : logs.every(({ hash }) => hash === blockHash);

/** Reads the logs of a node's response in ascending order, each once. Throws if they do not belong to the request. */
export const readLogs = (bytes: Uint8Array, { range, matches, createError }: ExpectedLogs): readonly ScannedLog[] => {
  let logs: readonly ScannedLog[] | undefined;
  try {
    logs = orderLogs(scanLogs(bytes));
  } catch (error) {
    if (!(error instanceof SyntaxError)) {
      throw error;
    }
    throw createError(error.message);
  }
  if (logs === undefined) {
    throw createError("Logs of two blocks with one number");
  }
  if (!isWithin(range, logs)) {
    throw createError("Logs outside the requested range");
  }
  if (!logs.every(matches)) {
    throw createError("Logs that the filter does not match");
  }
  return logs;
};
