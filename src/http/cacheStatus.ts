import type { CacheStatus, RpcResponse } from "../core/rpcSource.ts";

/** Formats a string of RFC 8941, section 3.3.3, which is printable ASCII. Only `detail` is free text. */
const formatString = (text: string): string => `"${text.replace(/[^\x20-\x7e]/g, "?").replace(/["\\]/g, "\\$&")}"`;

/** The statuses of a hit, which need no formatting. */
const HITS: Readonly<Record<NonNullable<CacheStatus["hit"]>, string>> = {
  memory: "forebay; hit; detail=memory",
  disk: "forebay; hit; detail=disk",
  redis: "forebay; hit; detail=redis",
  state: "forebay; hit; detail=state",
  view: "forebay; hit; detail=view",
  local: "forebay; hit; detail=local",
};

const formatOne = ({ hit, fwd, stored, collapsed, detail }: CacheStatus): string => {
  let text = "forebay";
  if (hit !== undefined) {
    text = HITS[hit];
  } else if (fwd !== undefined) {
    text += `; fwd=${fwd}`;
  }
  if (stored === true) {
    text += "; stored";
  }
  if (collapsed === true) {
    text += "; collapsed";
  }
  if (detail !== undefined && hit === undefined) {
    text += `; detail=${formatString(detail)}`;
  }
  return text;
};

/** A batch is a hit if all its calls are. Otherwise `fwd` has the reason, and `detail` the number of hits. */
const formatMany = (statuses: readonly CacheStatus[], errors: number): string => {
  const hits = statuses.filter(({ hit }) => hit !== undefined).length;
  const calls = statuses.length + errors;
  const detail = `detail="${hits} of ${calls} hits"`;
  if (hits === calls) {
    return `forebay; hit; ${detail}`;
  }
  if (hits > 0) {
    return `forebay; fwd=partial; ${detail}`;
  }
  const reasons = new Set(statuses.map(({ fwd }) => fwd ?? "miss"));
  return `forebay; fwd=${reasons.size === 1 ? [...reasons].join() : "miss"}; ${detail}`;
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
  return formatMany(
    responses.map(({ status }) => status),
    errors,
  );
};
