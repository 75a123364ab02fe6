import type { CacheStatus, RpcResponse } from "../core/rpcSource.ts";

/** Formats a string of RFC 8941, section 3.3.3, which is printable ASCII. Only `detail` is free text. */
const formatString = (text: string): string => `"${text.replace(/[^\x20-\x7e]/g, "?").replace(/["\\]/g, "\\$&")}"`;

/** The texts of a status: as it is, stored, collapsed, and both. */
const textsOf = (text: string): readonly string[] => [
  text,
  `${text}; stored`,
  `${text}; collapsed`,
  `${text}; stored; collapsed`,
];

const HITS: Readonly<Record<NonNullable<CacheStatus["hit"]>, readonly string[]>> = {
  memory: textsOf("forebay; hit; detail=memory"),
  disk: textsOf("forebay; hit; detail=disk"),
  redis: textsOf("forebay; hit; detail=redis"),
  state: textsOf("forebay; hit; detail=state"),
  view: textsOf("forebay; hit; detail=view"),
  local: textsOf("forebay; hit; detail=local"),
};

const FORWARDED: Readonly<Record<NonNullable<CacheStatus["fwd"]>, readonly string[]>> = {
  miss: textsOf("forebay; fwd=miss"),
  bypass: textsOf("forebay; fwd=bypass"),
  method: textsOf("forebay; fwd=method"),
  partial: textsOf("forebay; fwd=partial"),
  request: textsOf("forebay; fwd=request"),
};

const UNKNOWN = textsOf("forebay");

const formatOne = ({ hit, fwd, stored, collapsed, detail }: CacheStatus): string => {
  const texts = hit === undefined ? (fwd === undefined ? UNKNOWN : FORWARDED[fwd]) : HITS[hit];
  const text = texts[(stored ? 1 : 0) + (collapsed ? 2 : 0)] ?? "forebay";
  return detail === undefined || hit !== undefined ? text : `${text}; detail=${formatString(detail)}`;
};

/** A batch is a hit if all its calls are. Otherwise `fwd` has the reason, and `detail` the number of hits. */
const formatMany = (responses: readonly Pick<RpcResponse, "status">[], errors: number): string => {
  let hits = 0;
  let reason: CacheStatus["fwd"];
  for (const { status } of responses) {
    const { hit, fwd = "miss" } = status;
    hits += hit === undefined ? 0 : 1;
    reason = reason === undefined || reason === fwd ? fwd : "miss";
  }
  const calls = responses.length + errors;
  const detail = `detail="${hits} of ${calls} hits"`;
  if (hits === calls) {
    return `forebay; hit; ${detail}`;
  }
  return `forebay; fwd=${hits > 0 ? "partial" : (reason ?? "miss")}; ${detail}`;
};

/** Formats the Cache-Status header (RFC 9211) of one response. `errors` is the number of failed calls of a batch. */
export const formatCacheStatus = (responses: readonly Pick<RpcResponse, "status">[], errors = 0): string => {
  const [first] = responses;
  if (first === undefined) {
    return errors === 0 ? "forebay" : "forebay; detail=error";
  }
  if (responses.length === 1 && errors === 0) {
    return formatOne(first.status);
  }
  return formatMany(responses, errors);
};
