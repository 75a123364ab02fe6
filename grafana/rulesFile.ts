import { z } from "zod";

const rule = z.strictObject({
  alert: z.string().regex(/^Forebay[A-Z]\w+$/),
  expr: z.string(),
  for: z.string().optional(),
  labels: z.strictObject({ severity: z.enum(["warning", "critical"]) }),
  annotations: z.strictObject({ summary: z.string(), description: z.string(), runbook_url: z.string() }),
});

/** The schema of the file of Prometheus rules. */
export const rulesFile = z.strictObject({
  groups: z.array(z.strictObject({ name: z.string(), rules: z.array(rule) })),
});
