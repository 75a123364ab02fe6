import { smaller } from "./bigintOrder.ts";
import type { RuleDifference } from "./nodeRules.ts";
import { type ChainForks, newestRulesAt } from "./rules.ts";
import { laterFields, unknownFields } from "./unknownFields.ts";

/** A header as a node returned it. */
export interface HeadHeader {
  readonly number: bigint;
  readonly timestamp: bigint;
  readonly fields: Readonly<Record<string, unknown>>;
}

/**
 * Returns the difference that a head's header shows: fields that its fork does not have.
 * `before` is the difference of the previous head. If its time is earlier, the result has that time.
 */
export const findHeaderDifference = (
  { number, timestamp, fields }: HeadHeader,
  forks: ChainForks,
  before: RuleDifference | undefined,
): RuleDifference | undefined => {
  const names = unknownFields(laterFields(fields), newestRulesAt(forks, number, timestamp));
  if (names.length === 0) {
    return undefined;
  }
  return { from: smaller(before?.from ?? timestamp, timestamp), what: `header field ${names.join(", ")}` };
};

/** Returns the time from which the rules are unknown: the earliest of the forks' own and of all differences. */
export const findUnknownFrom = (forks: ChainForks, differences: readonly RuleDifference[]): bigint | undefined => {
  const times = [forks.unknownFrom, ...differences.map(({ from }) => from)].flatMap((time) => time ?? []);
  return times.length === 0 ? undefined : times.reduce(smaller);
};

/** Returns the forks with another time from which the rules are unknown. */
export const withUnknownFrom = (forks: ChainForks, unknownFrom: bigint | undefined): ChainForks => {
  const { unknownFrom: _, ...rest } = forks;
  return unknownFrom === undefined ? rest : { ...rest, unknownFrom };
};
