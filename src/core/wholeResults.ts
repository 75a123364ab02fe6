import { asText, isNullText } from "../json/jsonBytes.ts";
import { elements, members } from "../json/members.ts";

/** What may come in place of a whole result. Only whole results are kept (RETENTION). */
interface OtherForms {
  /** The JSON text that means the same as `null`: the object does not exist, or the node does not have it. */
  readonly nothing?: '"0x"' | "[]";
  /** The result is a list, of which single items may be errors. */
  readonly hasItems?: true;
}

const RAW: OtherForms = { nothing: '"0x"' };
const ITEMS: OtherForms = { hasItems: true };

/** By method. Each method may return `null`. */
const OTHER_FORMS: ReadonlyMap<string, OtherForms> = new Map([
  // geth returns no bytes for an unknown hash or index.
  ["eth_getRawTransactionByHash", RAW],
  ["eth_getRawTransactionByBlockHashAndIndex", RAW],
  ["eth_getRawTransactionByBlockNumberAndIndex", RAW],
  ["debug_getRawTransaction", RAW],
  ["debug_getRawBlock", RAW],
  ["debug_getRawHeader", RAW],
  ["debug_getRawBlockAccessList", RAW],
  // A transaction has at least one trace.
  ["trace_transaction", { nothing: "[]" }],
  // The item of a transaction that a tracer did not complete in time is `{txHash, error}`.
  ["debug_traceBlockByHash", ITEMS],
  ["debug_traceBlockByNumber", ITEMS],
]);

/** Whether a result means that there is nothing, or that the node does not have it. */
export const isNothing = (method: string, body: Uint8Array): boolean => {
  const nothing = OTHER_FORMS.get(method)?.nothing;
  return isNullText(body) || (nothing !== undefined && body.byteLength === nothing.length && asText(body) === nothing);
};

/** Whether single items of the method's results may be errors. */
export const hasItems = (method: string): boolean => OTHER_FORMS.get(method)?.hasItems === true;

/** Whether the item has a result. `error: null` is no error. */
const isWholeItem = (item: Uint8Array): boolean => {
  for (const { key, value } of members(item)) {
    const isAbsent = isNullText(value);
    if ((key === "error" && !isAbsent) || (key === "result" && isAbsent)) {
      return false;
    }
  }
  return !isNullText(item);
};

/** Whether each item of a list is a result. */
export const areItemsWhole = (list: Uint8Array): boolean => {
  for (const item of elements(list)) {
    if (!isWholeItem(item)) {
      return false;
    }
  }
  return true;
};
