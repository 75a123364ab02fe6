import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { BlockId } from "../core/heads.ts";
import type { RunScript, ScriptArgument } from "../core/runScript.ts";
import { type Hash, isQuantity } from "../ethereum/hex.ts";
import type { LogQuery } from "../ethereum/logFilter.ts";
import {
  ADVANCE_FILTER,
  COUNT_FILTER,
  CREATE_FILTER,
  DISCOUNT_FILTER,
  ENTRY_LENGTH,
  READ_BLOCKS,
  READ_FILTER,
  READ_LOGS,
  READ_TIME,
  RECOUNT_FILTER,
  REMOVE_FILTER,
} from "./filterScripts.ts";
import {
  FILTER_EXPIRY_MS,
  type FilterAdvance,
  type FilterStore,
  formatQuery,
  MAX_FILTER_BLOCKS,
  weightOfQuery,
} from "./filterStore.ts";

export interface SharedFiltersOptions {
  readonly maxPerClient: number;
  readonly maxBytesPerClient: number;
  /** Runs a script on one key of Redis. Rejects if Redis does not answer in time. */
  readonly run: RunScript;
}

/** Raise it if the stored format of a filter changes: replicas of two versions can run at the same time. */
const FORMAT = 1;
/** The format of the sets of filters by client. Format 1 had no weights. */
const COUNT_FORMAT = 2;
const NUMBER_LENGTH = 16;

const keyOf = (id: string): string => `filter${FORMAT}:${id}`;
const countKeyOf = (clientId: string): string => `filtersOf${COUNT_FORMAT}:${clientId}`;
/** An entry of a client's set. It has the weight of the filter, so that a script can add them up. */
const countEntry = (id: string, query: string): string => `${weightOfQuery(query)}:${id}`;
const createVersion = (): string => randomBytes(9).toString("base64url");

const formatNumber = (number: bigint): string => number.toString(16).padStart(NUMBER_LENGTH, "0");
const formatEntry = ({ number, hash }: BlockId): string => formatNumber(number) + hash.slice(2);

const parseEntries = (text: string): BlockId[] =>
  Array.from({ length: text.length / ENTRY_LENGTH }, (_, index) => {
    const entry = text.slice(index * ENTRY_LENGTH, (index + 1) * ENTRY_LENGTH);
    const hash: Hash = `0x${entry.slice(NUMBER_LENGTH)}`;
    return { number: BigInt(`0x${entry.slice(0, NUMBER_LENGTH)}`), hash };
  });

const parseQuery = (text: string): LogQuery | undefined =>
  text === ""
    ? undefined
    : JSON.parse(text, (key, value: unknown) =>
        (key === "fromBlock" || key === "toBlock") && isQuantity(value) ? BigInt(value) : value,
      );

const texts = (reply: unknown): (string | undefined)[] =>
  Array.isArray(reply) ? reply.map((each: unknown) => (typeof each === "string" ? each : undefined)) : [];

/** Redis executes an advance within this time, or never. */
const ADVANCE_MS = 500;
/** Redis compares whole milliseconds, and a timer may fire one early. */
const MARGIN_MS = 5;

const advanceArguments = (
  { from, stayed, added, logs, finalized }: FilterAdvance,
  next: string,
  deadlineMs: number,
): ScriptArgument[] => [
  from,
  next,
  stayed ?? MAX_FILTER_BLOCKS,
  added.map(formatEntry).join(""),
  formatNumber(finalized < 0n ? 0n : finalized + 1n),
  deadlineMs,
  ...logs.flatMap(({ block, logs: bytes }) => [formatEntry(block), Buffer.from(bytes)]),
];

const advanceFilter = async (run: RunScript, key: string, advance: FilterAdvance): Promise<boolean> => {
  const next = createVersion();
  const redisMs = Number(await run(READ_TIME, key, []));
  const startMs = performance.now();
  try {
    return (await run(ADVANCE_FILTER, key, advanceArguments(advance, next, redisMs + ADVANCE_MS))) === 1;
  } catch (error) {
    // The reply may be lost. After the deadline, the version shows whether Redis has executed the advance.
    await sleep(Math.max(0, startMs + ADVANCE_MS + MARGIN_MS - performance.now()));
    const [version] = texts(await run(READ_BLOCKS, key, []));
    if (version === next) {
      return true;
    }
    throw error;
  }
};

/** Ignores a failure. A filter that counts towards its client's limit for too long, or too briefly, does no harm. */
const ignoreFailure = (update: Promise<unknown>): void => void update.catch(() => undefined);

/** Stores filters in Redis. Every replica answers their polls, and exactly one poll returns each event. */
export const createSharedFilters = ({ maxPerClient, maxBytesPerClient, run }: SharedFiltersOptions): FilterStore => {
  return {
    add: async (id, { clientId, query, blocks }) => {
      const nowMs = Date.now();
      const text = formatQuery(query);
      const limits = [maxPerClient, maxBytesPerClient - weightOfQuery(text)];
      const countArguments = [nowMs, nowMs + FILTER_EXPIRY_MS, countEntry(id, text), ...limits];
      if ((await run(COUNT_FILTER, countKeyOf(clientId), countArguments)) !== 1) {
        return false;
      }
      const entries = blocks.map(formatEntry).join("");
      await run(CREATE_FILTER, keyOf(id), [text, clientId, createVersion(), entries]);
      return true;
    },
    read: async (id) => {
      const [query = "", clientId = "", version, last = ""] = texts(await run(READ_FILTER, keyOf(id), []));
      if (version === undefined) {
        return undefined;
      }
      ignoreFailure(run(RECOUNT_FILTER, countKeyOf(clientId), [Date.now() + FILTER_EXPIRY_MS, countEntry(id, query)]));
      return { query: parseQuery(query), version, last: parseEntries(last)[0] };
    },
    blocks: async (id, version) => {
      const [current, entries = ""] = texts(await run(READ_BLOCKS, keyOf(id), []));
      return current === version ? parseEntries(entries) : undefined;
    },
    logs: async (id, blocks) => {
      if (blocks.length === 0) {
        return [];
      }
      const fields = blocks.map((block) => `l:${formatEntry(block)}`);
      const logs = texts(await run(READ_LOGS, keyOf(id), fields));
      return logs.map((text) => (text === undefined ? undefined : Buffer.from(text)));
    },
    advance: (id, advance) => advanceFilter(run, keyOf(id), advance),
    remove: async (id) => {
      const [clientId, query = ""] = texts(await run(REMOVE_FILTER, keyOf(id), []));
      if (clientId === undefined) {
        return false;
      }
      ignoreFailure(run(DISCOUNT_FILTER, countKeyOf(clientId), [countEntry(id, query)]));
      return true;
    },
  };
};
