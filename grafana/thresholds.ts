import { readFileSync } from "node:fs";
import { parse } from "yaml";
import { rulesFile } from "./rulesFile.ts";

/** A comparison with a positive number at the end of an expression. `> 0` is not one: it means that something happened. */
const THRESHOLD = /> ([\d.e]+)\s*$/;

/** Returns the names of the alerts that have a threshold. The chart replaces the number. */
export const alertsWithThreshold = (): readonly string[] =>
  rulesFile
    .parse(parse(readFileSync(new URL("alerts.yaml", import.meta.url), "utf8")))
    .groups.flatMap(({ rules }) => rules)
    .filter(({ expr }) => Number(THRESHOLD.exec(expr)?.[1] ?? 0) > 0)
    .map(({ alert }) => alert);
