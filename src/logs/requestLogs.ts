import { Context, type ContextChanges } from "../core/context.ts";
import { type Node, NodeError } from "../core/node.ts";
import { isNotYet } from "../core/retryPolicy.ts";
import type { RpcRequest } from "../core/rpcSource.ts";
import { formatLogFilter, type LogFilter } from "../ethereum/logFilter.ts";
import { CLOSE_BRACKET, parseJson, QUOTE } from "../json/jsonBytes.ts";
import { type Call, createCall } from "../jsonrpc/call.ts";
import type { ResultMemory } from "../jsonrpc/response.ts";
import type { SlotOwner } from "../limits/fairGate.ts";
import { wrongLogs } from "../verification/logVerifier.ts";
import type { FetchRetries } from "./fetchRetries.ts";
import { orderLogs } from "./mergeLogs.ts";
import type { FetchRange } from "./plan.ts";
import { type ScannedLog, scanLogs, withoutZeroTimestamps } from "./scanLogs.ts";

/** What the requests of one log query share beside their context. */
interface FetchFields {
  readonly owner: SlotOwner;
  /** Counts received bytes; throws if there is no room for them. */
  readonly countBytes: (bytes: number) => void;
  /** The query can plan the range again. False for a part of a planned range. */
  readonly isPlanned?: boolean;
  readonly retries: FetchRetries;
  /** Default: the request holds no logs, because `countBytes` counts them. */
  readonly memory?: ResultMemory | undefined;
}

/** The context of one request of a log query. */
export class FetchContext extends Context {
  readonly #fields: FetchFields;

  constructor(context: Context, fields: FetchFields) {
    const { request, view, deadlineMs, bypassCache, span } = context;
    super(request, view, deadlineMs, { bypassCache, span, ending: context });
    this.#fields = fields;
  }

  get owner(): SlotOwner {
    return this.#fields.owner;
  }

  get countBytes(): FetchFields["countBytes"] {
    return this.#fields.countBytes;
  }

  get isPlanned(): boolean {
    return this.#fields.isPlanned === true;
  }

  get retries(): FetchRetries {
    return this.#fields.retries;
  }

  override get memory(): ResultMemory | undefined {
    return this.#fields.memory;
  }

  override with(changes: ContextChanges): FetchContext {
    return new FetchContext(super.with(changes), this.#fields);
  }

  withFetch(changes: Partial<FetchFields>): FetchContext {
    return new FetchContext(this, { ...this.#fields, ...changes });
  }
}

/** A node's response to one range of blocks. */
export interface RangeResponse {
  readonly node: Node;
  readonly range: FetchRange;
  readonly logs: readonly ScannedLog[];
  readonly context: FetchContext;
}

const RETRY_LATER = { status: 503, retryAfterSeconds: 1 };

export const invalidAnswer = (node: Node, message: string): NodeError =>
  new NodeError("invalidAnswer", node.name, message, RETRY_LATER);

export const otherBranch = (node: Node, message: string): NodeError =>
  new NodeError("otherBranch", node.name, message, RETRY_LATER);

/**
 * Requests the logs of a range from this node only. Returns them in ascending order, each once. Throws if they do not belong to the
 * request. With `checksFilter` that is a wrong response, and so are logs that the filter does not match.
 */
export const requestLogs = async (
  node: Node,
  range: FetchRange,
  context: FetchContext,
  checksFilter: boolean,
): Promise<readonly ScannedLog[]> => {
  const { blockHash, filter } = range;
  const params = [formatLogFilter(filter, blockHash === undefined ? range : { blockHash })];
  const text = await request(node, createCall("eth_getLogs", params), context, context.countBytes).catch((error) => {
    // The view has each block of a range by number.
    throw blockHash === undefined && isNotYet(error)
      ? otherBranch(node, `header not found: ${node.name} does not have block ${range.to} yet`)
      : error;
  });
  const failed = (message: string) => (checksFilter ? wrongLogs(node) : invalidAnswer(node, message));
  const logs = readLogs(text, failed);
  if (!isWithin(range, logs)) {
    throw failed("Logs outside the requested range");
  }
  if (checksFilter && !logs.every(createLogMatcher(withoutEmptyTail(filter)))) {
    throw failed("Logs that the filter does not match");
  }
  return logs;
};

/** Sends one call to this node only, and returns the parsed result. For small results: their bytes are not counted. */
export const requestJson = async (
  node: Node,
  method: string,
  params: readonly unknown[],
  context: Context,
): Promise<unknown> => {
  const text = await request(node, createCall(method, params), context);
  try {
    return parseJson(text);
  } catch (cause) {
    throw new NodeError("invalidAnswer", node.name, `${method}: not JSON`, { cause });
  }
};

/** Sends one call to this node only, and returns the text of the result. */
const request = async (
  node: Node,
  call: Call,
  context: Context,
  onBytes?: FetchContext["countBytes"],
): Promise<Uint8Array> => {
  const rpcRequest: RpcRequest = { ...call, retention: "never", canonicalParams: "" };
  const { body } = await node.request(rpcRequest, context);
  if (body instanceof Uint8Array) {
    onBytes?.(body.length);
    return body;
  }
  const chunks: Uint8Array[] = [];
  for await (const chunk of body) {
    onBytes?.(chunk.length);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
};

const readLogs = (text: Uint8Array, failed: (message: string) => NodeError): readonly ScannedLog[] => {
  let logs: readonly ScannedLog[] | undefined;
  try {
    logs = orderLogs(scanLogs(withoutZeroTimestamps(text)));
  } catch (error) {
    if (!(error instanceof SyntaxError)) {
      throw error;
    }
    throw failed(error.message);
  }
  if (logs === undefined) {
    throw failed("Logs of two blocks with one number");
  }
  // Only a notification can say that a log is removed.
  if (logs.some(({ isRemoved }) => isRemoved)) {
    throw failed("A log that is removed");
  }
  return logs;
};

const isWithin = ({ from, to, blockHash }: FetchRange, logs: readonly ScannedLog[]): boolean =>
  blockHash === undefined
    ? logs.every(({ block }) => block >= from && block <= to)
    : logs.every(({ hash }) => hash === blockHash);

/** Returns the filter without empty positions at its end. Nodes that ignore them match this filter. */
const withoutEmptyTail = (filter: LogFilter): LogFilter => ({
  ...filter,
  topics: filter.topics.slice(0, filter.topics.findLastIndex((position) => position.length > 0) + 1),
});

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
  try {
    const topics: unknown = JSON.parse(log.text.toString("latin1", log.topics, end + 1));
    return Array.isArray(topics) ? topics : [];
  } catch {
    // A node may return another value than a list of texts.
    return [];
  }
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

/**
 * Removes logs with fewer topics than the filter has positions. geth counts empty positions at the end of a filter.
 * Reth, anvil and some proxies ignore them. If the last position has values, every log has enough topics, and none is read.
 */
export const dropShortLogs = ({ topics }: LogFilter, logs: readonly ScannedLog[]): readonly ScannedLog[] =>
  topics.at(-1)?.length === 0 ? logs.filter((log) => countTopics(log) >= topics.length) : logs;

const TOPICS = Buffer.from('"topics"');

/** Counts the topics by their quotes: a hex string has two, and no other byte of the list is a quote. */
const countTopics = ({ text, start, end }: ScannedLog): number => {
  const key = text.indexOf(TOPICS, start);
  if (key === -1 || key >= end) {
    return 0;
  }
  let quotes = 0;
  for (let at = key + TOPICS.length; at < end && text[at] !== CLOSE_BRACKET; at++) {
    if (text[at] === QUOTE) {
      quotes++;
    }
  }
  return quotes / 2;
};
