import { type LogFilter, type LogFilterLimits, parseLogQuery } from "../ethereum/logFilter.ts";
import { invalidParams } from "../jsonrpc/rpcError.ts";

/** The parsed parameters of eth_subscribe. */
export type SubscriptionRequest =
  | { readonly kind: "newHeads" | "syncing" | "newFlashblocks" }
  | { readonly kind: "logs" | "pendingLogs"; readonly filter: LogFilter }
  | { readonly kind: "newPendingTransactions"; readonly isFull: boolean }
  | {
      readonly kind: "newFlashblockTransactions";
      readonly isFull: boolean;
      /** Selects transactions with a matching log. */
      readonly filter?: LogFilter;
    };

export type SubscriptionKind = SubscriptionRequest["kind"];

const ANY: LogFilter = { addresses: [], topics: [] };

const parseFilter = (value: unknown, limits: LogFilterLimits): LogFilter => {
  if (value === undefined || value === null) {
    return ANY;
  }
  const { filter, blocks } = parseLogQuery(value, limits);
  if ("blockHash" in blocks) {
    throw invalidParams("blockHash: a subscription is to blocks that are to come");
  }
  return filter;
};

const parseFull = (value: unknown): boolean => {
  if (value === undefined || value === null) {
    return false;
  }
  if (typeof value !== "boolean") {
    throw invalidParams("expected true for whole transactions, or false for their hashes");
  }
  return value;
};

/** Parses the parameters of eth_subscribe. Throws RpcError for options that have no effect. */
export const parseSubscription = (params: readonly unknown[], limits: LogFilterLimits): SubscriptionRequest => {
  const [kind, option, ...more] = params;
  if (more.length > 0) {
    throw invalidParams("too many arguments, want at most 2");
  }
  switch (kind) {
    case "newHeads":
    case "syncing":
    case "newFlashblocks":
      if (option !== undefined && option !== null) {
        throw invalidParams(`${kind} takes no options`);
      }
      return { kind };
    case "logs":
    case "pendingLogs":
      return { kind, filter: parseFilter(option, limits) };
    case "newPendingTransactions":
      return { kind, isFull: parseFull(option) };
    case "newFlashblockTransactions":
      return typeof option === "object" && option !== null
        ? { kind, isFull: true, filter: parseFilter(option, limits) }
        : { kind, isFull: parseFull(option) };
    default:
      throw invalidParams(
        typeof kind === "string"
          ? `no subscription is called "${kind.slice(0, 64)}"`
          : "expected a subscription's name",
      );
  }
};
