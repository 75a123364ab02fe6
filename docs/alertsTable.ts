import { readFileSync } from "node:fs";
import { parse } from "yaml";
import { rulesFile } from "../grafana/rulesFile.ts";

const readRules = () =>
  rulesFile
    .parse(parse(readFileSync(new URL("../grafana/alerts.yaml", import.meta.url), "utf8")))
    .groups.flatMap(({ rules }) => rules);

/** Writes severity, condition and meaning of each rule below the heading of its section in docs/runbook.md. */
export const withAlerts = (page: string): string => {
  const texts = new Map(
    readRules().map(({ alert, expr, for: duration, labels, annotations }) => {
      const condition = `\`${expr.trim().replaceAll(/\s+/g, " ")}\`${duration === undefined ? "" : ` for ${duration}`}`;
      const critical = labels.severity === "critical" ? "**Critical.** " : "";
      return [alert, `${critical}Fires at ${condition}. ${annotations.description}`];
    }),
  );
  return page.replaceAll(/^### (\w+)\n.*$/gm, (section, alert: string) =>
    texts.has(alert) ? `### ${alert}\n${texts.get(alert)}` : section,
  );
};
