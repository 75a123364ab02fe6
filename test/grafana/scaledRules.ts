import { readFileSync } from "node:fs";
import { parse, stringify } from "yaml";
import { rulesFile } from "../../grafana/rulesFile.ts";

const SECONDS: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3_600, d: 86_400 };

/** The rules of `grafana/alerts.yaml`. */
export const RULES = rulesFile
  .parse(parse(readFileSync(new URL("../../grafana/alerts.yaml", import.meta.url), "utf8")))
  .groups.flatMap(({ rules }) => rules);

export type Rule = (typeof RULES)[number];

export interface RuleScale {
  /** Durations are divided by this. */
  readonly divisor: number;
  /** No shortened `for` and no window is longer: an hour divided by 20 is still three minutes. */
  readonly maxSeconds: number;
  /** The same for offsets. Default: `maxSeconds`. */
  readonly maxOffsetSeconds?: number;
  /** Other changes of a rule, for example its threshold. */
  readonly change?: (rule: Rule) => Rule;
}

/** Returns the rules as YAML, with shorter `for`, windows and offsets. */
export const scaleRules = (scale: RuleScale): string => {
  const { divisor, maxSeconds, maxOffsetSeconds = maxSeconds, change = (rule) => rule } = scale;
  const shorten = (amount: string, unit: string, most = maxSeconds): string => {
    const seconds = (Number(amount) * (SECONDS[unit] ?? Number.NaN)) / divisor;
    return `${Math.round(Math.min(seconds, most) * 1_000)}ms`;
  };
  const scaled = ({ expr, for: duration, ...rest }: Rule): Rule => ({
    ...rest,
    expr: expr.replaceAll(
      /(\[|\boffset )(\d+)([smhd])\b/g,
      (_, before: string, amount: string, unit: string) =>
        before + shorten(amount, unit, before === "[" ? maxSeconds : maxOffsetSeconds),
    ),
    ...(duration !== undefined && { for: shorten(duration.slice(0, -1), duration.slice(-1)) }),
  });
  return stringify({ groups: [{ name: "forebay", rules: RULES.map((rule) => scaled(change(rule))) }] });
};
