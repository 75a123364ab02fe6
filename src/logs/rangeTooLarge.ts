import type { BlockRange } from "../core/logRange.ts";
import type { NodeError } from "../core/node.ts";
import { isFields } from "../json/jsonBytes.ts";

/** The dimension in which a request was too large for a node, and the limit from the node's message. */
export interface TooLarge {
  readonly what: "blocks" | "results" | "bytes" | "addresses" | "topics" | "time";
  readonly limit?: number;
  /** A range that the node suggests. */
  readonly range?: BlockRange;
}

/** Messages that never mean "too large", even if they match PATTERNS (docs/reference/providers.md, Not splittable). */
const OTHER_CAUSES: readonly RegExp[] = [
  /too many requests|rate.?limit|exceeded .*\brate\b|requests per (second|minute|day)|request limit|compute units/i,
  /archive requests require|personal token|reached the free tier|monthly capacity|payment required|quota/i,
  /invalid block range|extends beyond current head|pending logs are not supported|missing trie node/i,
  /history has been pruned|pruned history|block not found|unknown block|header not found/i,
];

const N = String.raw`(0x[0-9a-f]+|[0-9][0-9,_]*(?:\.[0-9]+)?\s?k?)\b`;

/**
 * Known messages of providers; the first group is the limit (docs/reference/providers.md, Log ranges and results).
 * The first match wins, so that patterns with a limit come first.
 */
const PATTERNS: readonly (readonly [RegExp, TooLarge["what"]])[] = (
  [
    ["exceed max topics", "topics"],
    ["exceed max addresses or topics", "addresses"],
    ["query contains [0-9,]+ filters\\. the current limit is N", "addresses"],
    ["exceeded max limit of N", "bytes"],
    ["response size should not (?:be )?greater than N bytes", "bytes"],
    ["log response size exceeded", "results"],
    ["response is too big|response too large|backend response too large|response size (?:is )?too", "bytes"],
    ["query returned more than N", "results"],
    ["narrow your filter:? N", "results"],
    ["exceeds? max results:? N", "results"],
    ["exceeds? max results", "results"],
    ["max logs per response is N", "results"],
    ["logs matched by query exceeds limit of N", "results"],
    ["query must be smaller than size N", "results"],
    ["too many logs", "results"],
    ["range [0-9,]+ exceeds limit of N", "blocks"],
    ["exceeds the range allowed for your plan \\([0-9,]+ > N", "blocks"],
    ["is limited to 0 - N", "blocks"],
    ["limited to (?:a |an )?N", "blocks"],
    ["limit the query to at most N", "blocks"],
    ["blocks distance:? N", "blocks"],
    ["ranges over N", "blocks"],
    ["maximum is set to N", "blocks"],
    ["maximum block range:? N", "blocks"],
    ["max block range:? N", "blocks"],
    ["max range:? N", "blocks"],
    ["number of requested blocks is N", "blocks"],
    ["blocks range, the limit is N", "blocks"],
    ["range is too large, max is N", "blocks"],
    ["maximum of N blocks per", "blocks"],
    ["too wide \\(maximum N", "blocks"],
    ["up to an? N block", "blocks"],
    ["range greater than N", "blocks"],
    ["block range exceeds N", "blocks"],
    ["range (?:is )?(?:too (?:wide|large|big)|limit exceeded|larger than|exceed)", "blocks"],
    ["range threshold exceeded|too many blocks|exceeds? (?:the )?(?:max|maximum|allowed) (?:block )?range", "blocks"],
    ["try with this block range|this block range should work|reduc\\w+ your block range", "results"],
    ["query timeout|query timed out|request timed out|execution timeout", "time"],
  ] as const
).map(
  ([text, what]) =>
    [
      new RegExp(
        text.replace("N", () => N),
        "i",
      ),
      what,
    ] as const,
);

/** Parses a number such as "10,000", "2K", "0x7d0" or "1k". */
const parseLimit = (text: string | undefined): number | undefined => {
  if (text === undefined) {
    return undefined;
  }
  const plain = text.replaceAll(/[,_\s]/g, "").toLowerCase();
  const limit = plain.endsWith("k") ? Number(plain.slice(0, -1)) * 1000 : Number(plain);
  return Number.isFinite(limit) && limit >= 1 ? Math.floor(limit) : undefined;
};

const RANGE =
  /(?:block range|should work|range)[^[0-9]{0,20}\[?(0x[0-9a-f]+|[0-9]+)\s*(?:,|-|to)\s*(0x[0-9a-f]+|[0-9]+)/i;

const isNumeral = (value: unknown): value is string | number =>
  (typeof value === "string" && /^(?:0x[0-9a-f]+|[0-9]+)$/i.test(value)) || Number.isSafeInteger(value);

const parseRange = (message: string, data: unknown): BlockRange | undefined => {
  if (isFields(data) && isNumeral(data.from) && isNumeral(data.to)) {
    return { from: BigInt(data.from), to: BigInt(data.to) };
  }
  const [, from, to] = RANGE.exec(message) ?? [];
  return from === undefined || to === undefined ? undefined : { from: BigInt(from), to: BigInt(to) };
};

/** Codes of jsonrpsee for a response that is too big. */
const TOO_BIG_CODES: ReadonlySet<number> = new Set([-32008, -32702]);

/**
 * Parses a node's error; returns undefined if it does not mean "too large".
 * The code alone is not enough: nodes use -32005 for rate limits as well.
 */
export const parseTooLarge = (error: NodeError): TooLarge | undefined => {
  if (error.kind === "billing" || error.kind === "rateLimited") {
    return undefined;
  }
  const data = typeof error.data === "string" ? error.data : "";
  const text = `${error.message} ${data}`;
  if (OTHER_CAUSES.some((cause) => cause.test(text))) {
    return undefined;
  }
  for (const [pattern, what] of PATTERNS) {
    const match = pattern.exec(text);
    if (match === null) {
      continue;
    }
    const limit = parseLimit(match[1]);
    const range = parseRange(error.message, error.data);
    return { what, ...(limit !== undefined && { limit }), ...(range && { range }) };
  }
  if (TOO_BIG_CODES.has(error.code)) {
    return { what: "bytes" };
  }
  return error.kind === "tooLarge" ? { what: "results" } : undefined;
};
