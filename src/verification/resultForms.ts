import { isNull } from "../core/rpcSource.ts";
import {
  asText,
  CLOSE_BRACE,
  CLOSE_BRACKET,
  LETTER_F,
  LETTER_T,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
} from "../json/jsonBytes.ts";
import { members } from "../json/members.ts";

/**
 * The form of a result. `quantity`: a number of up to 32 bytes. `word`: the same; nodes pad it to 32 bytes, or do not.
 * `data`: bytes. `hash`: 32 bytes. Nodes and tracers may return anything as `any`.
 */
interface ResultForm {
  readonly kind: "quantity" | "word" | "data" | "hash" | "boolean" | "string" | "object" | "list" | "any";
  /** `null` is a result: the object does not exist, or the node does not have it. */
  readonly isNullable?: true;
  /** Members that the object must have. */
  readonly fields?: readonly string[];
}

const QUANTITY: ResultForm = { kind: "quantity" };
const DATA: ResultForm = { kind: "data" };
const OBJECT: ResultForm = { kind: "object" };
const LIST: ResultForm = { kind: "list" };
const ANY: ResultForm = { kind: "any" };
const orNull = (form: ResultForm): ResultForm => ({ ...form, isNullable: true });
const objectWith = (...fields: readonly string[]): ResultForm => ({ kind: "object", fields });

/**
 * The form of the result of each method that reads from a node.
 * Source: the execution API specification, https://github.com/ethereum/execution-apis.
 */
const FORMS: Readonly<Record<string, ResultForm>> = {
  eth_blockNumber: QUANTITY,
  eth_gasPrice: QUANTITY,
  eth_maxPriorityFeePerGas: QUANTITY,
  eth_blobBaseFee: QUANTITY,
  eth_baseFee: QUANTITY,
  eth_feeHistory: objectWith("oldestBlock"),
  eth_config: objectWith("current"),
  eth_capabilities: objectWith("head"),

  eth_getBlockByNumber: orNull(OBJECT),
  eth_getBlockByHash: orNull(OBJECT),
  eth_getHeaderByNumber: orNull(OBJECT),
  eth_getHeaderByHash: orNull(OBJECT),
  eth_getBlockTransactionCountByNumber: orNull(QUANTITY),
  eth_getBlockTransactionCountByHash: orNull(QUANTITY),
  eth_getUncleCountByBlockNumber: orNull(QUANTITY),
  eth_getUncleCountByBlockHash: orNull(QUANTITY),
  eth_getUncleByBlockNumberAndIndex: orNull(OBJECT),
  eth_getUncleByBlockHashAndIndex: orNull(OBJECT),
  eth_getBlockReceipts: orNull(LIST),
  eth_getTransactionByHash: orNull(OBJECT),
  eth_getTransactionReceipt: orNull(OBJECT),
  eth_getTransactionByBlockNumberAndIndex: orNull(OBJECT),
  eth_getTransactionByBlockHashAndIndex: orNull(OBJECT),
  eth_getRawTransactionByHash: orNull(DATA),
  eth_getRawTransactionByBlockNumberAndIndex: orNull(DATA),
  eth_getRawTransactionByBlockHashAndIndex: orNull(DATA),
  debug_getRawTransaction: orNull(DATA),
  debug_getRawBlock: orNull(DATA),
  debug_getRawHeader: orNull(DATA),
  debug_getRawReceipts: orNull(LIST),
  eth_getBlockAccessList: orNull(LIST),
  debug_getRawBlockAccessList: orNull(DATA),
  debug_traceBlockByNumber: orNull(LIST),
  debug_traceBlockByHash: orNull(LIST),
  debug_traceTransaction: ANY,
  debug_traceCall: ANY,
  trace_block: orNull(LIST),
  trace_transaction: orNull(LIST),
  trace_replayTransaction: orNull(OBJECT),
  eth_getLogs: LIST,

  eth_getBalance: QUANTITY,
  eth_getTransactionCount: QUANTITY,
  eth_getCode: DATA,
  eth_getStorageAt: { kind: "word" },
  eth_getStorageValues: OBJECT,
  eth_getProof: objectWith("accountProof", "balance", "codeHash", "nonce", "storageHash", "storageProof"),
  eth_getAccount: orNull(objectWith("balance", "nonce")),
  eth_getAccountInfo: orNull(objectWith("balance", "nonce")),
  eth_call: DATA,
  eth_estimateGas: QUANTITY,
  eth_createAccessList: objectWith("accessList"),
  eth_simulateV1: LIST,
  eth_fillTransaction: objectWith("raw", "tx"),

  eth_syncing: ANY,
  net_listening: { kind: "boolean" },
  // Some nodes return a JSON number.
  net_peerCount: ANY,
  web3_clientVersion: { kind: "string" },
  web3_sha3: { kind: "hash" },
  eth_accounts: LIST,
  txpool_status: OBJECT,
  txpool_content: OBJECT,
  txpool_contentFrom: OBJECT,
  txpool_inspect: OBJECT,
};

const BY_METHOD: ReadonlyMap<string, ResultForm> = new Map(Object.entries(FORMS));

/** A longer result is not scanned: its edges are compared, and a thread checks that it is JSON. */
const MAX_SCANNED_BYTES = 128 * 1024;
/** A quantity has up to 32 bytes. */
const MAX_DIGITS = 64;
/** The quotes and the prefix `0x`. */
const HEX_FRAME_BYTES = 4;

const HEX_DIGITS: Uint8Array = Uint8Array.from({ length: 256 }, (_, code) =>
  /[0-9a-fA-F]/.test(String.fromCharCode(code)) ? 1 : 0,
);

/** Returns the number of digits between `"0x` and `"`; undefined if the text is not a hexadecimal string. */
const countDigits = (body: Uint8Array): number | undefined => {
  const end = body.length - 1;
  if (end < HEX_FRAME_BYTES - 1 || body[0] !== QUOTE || body[1] !== 0x30 || body[2] !== 0x78 || body[end] !== QUOTE) {
    return undefined;
  }
  const scanned = body.length > MAX_SCANNED_BYTES ? 0 : end;
  for (let at = 3; at < scanned; at++) {
    if (HEX_DIGITS[body[at] ?? 0] === 0) {
      return undefined;
    }
  }
  return body.length - HEX_FRAME_BYTES;
};

const isHex = (body: Uint8Array, isExpected: (digits: number) => boolean): boolean => {
  const digits = countDigits(body);
  return digits !== undefined && isExpected(digits);
};

const isBetween = (body: Uint8Array, first: number, last: number): boolean =>
  body.length > 1 && body[0] === first && body[body.length - 1] === last;

const hasFields = (body: Uint8Array, fields: readonly string[]): boolean => {
  if (body.length > MAX_SCANNED_BYTES) {
    return true;
  }
  const missing = new Set(fields);
  for (const { key } of members(body)) {
    missing.delete(key);
    if (missing.size === 0) {
      return true;
    }
  }
  return false;
};

const isBoolean = (body: Uint8Array): boolean =>
  (body[0] === LETTER_T || body[0] === LETTER_F) && body.length <= 5 && ["true", "false"].includes(asText(body));

const isOfKind = (body: Uint8Array, { kind, fields }: ResultForm): boolean => {
  switch (kind) {
    case "quantity":
    case "word":
      return isHex(body, (digits) => digits > 0 && digits <= MAX_DIGITS);
    case "data":
      return isHex(body, (digits) => digits % 2 === 0);
    case "hash":
      return isHex(body, (digits) => digits === MAX_DIGITS);
    case "boolean":
      return isBoolean(body);
    case "string":
      return isBetween(body, QUOTE, QUOTE);
    case "object":
      return isBetween(body, OPEN_BRACE, CLOSE_BRACE) && (fields === undefined || hasFields(body, fields));
    case "list":
      return isBetween(body, OPEN_BRACKET, CLOSE_BRACKET);
    case "any":
      return true;
  }
};

/** Whether the form of the method's result is known. A test requires it of each method of the table that a node answers. */
export const hasResultForm = (method: string): boolean => BY_METHOD.has(method);

const SCALARS: ReadonlySet<ResultForm["kind"]> = new Set(["quantity", "word", "data", "hash"]);

/**
 * Checks the JSON text of a result against the form of its method, without parsing it. `scanned`: it is also valid JSON.
 * `missing`: it is `null`, as of a node without the block. A method without a known form may have any result.
 */
export const checkForm = (method: string | undefined, body: Uint8Array): "scanned" | "right" | "missing" | "wrong" => {
  const form = method === undefined ? undefined : BY_METHOD.get(method);
  if (form === undefined) {
    return "right";
  }
  if (isNull({ body })) {
    return form.isNullable === true || form.kind === "any" ? "scanned" : "missing";
  }
  if (!isOfKind(body, form)) {
    return "wrong";
  }
  return SCALARS.has(form.kind) && body.length <= MAX_SCANNED_BYTES ? "scanned" : "right";
};

/** Whether results of the method are numbers, which nodes may write with leading zeros. */
export const isNumeric = (method: string): boolean => {
  const kind = BY_METHOD.get(method)?.kind;
  return kind === "quantity" || kind === "word";
};
