import { readFileSync } from "node:fs";
import { parse } from "yaml";
import { rulesFile } from "../grafana/rulesFile.ts";

const readRules = () =>
  rulesFile
    .parse(parse(readFileSync(new URL("../grafana/alerts.yaml", import.meta.url), "utf8")))
    .groups.flatMap(({ rules }) => rules);

/** Formats one row per rule: name, expression on one line, window and description. */
export const formatAlertsTable = (): string =>
  [
    "| Alert | Fires when | For | What it means |",
    "|---|---|---|---|",
    ...readRules().map(({ alert, expr, for: duration = "at once", labels, annotations }) => {
      const condition = expr.trim().replaceAll(/\s+/g, " ").replaceAll("|", "\\|");
      const name = labels.severity === "critical" ? `**${alert}**` : alert;
      return `| ${name} | \`${condition}\` | ${duration} | ${annotations.description} |`;
    }),
  ].join("\n");
