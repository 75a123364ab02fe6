import { z } from "zod";
import { callLimitOf } from "../access/rateLimits.ts";
import { chainSchema } from "./chainSchema.ts";
import { lowerCaseName } from "./optionTypes.ts";
import { accessSchema, cacheSchema, serverSchema, tracingSchema, usageSchema } from "./processSchema.ts";

type Access = z.infer<typeof accessSchema>;

/** Whether any client has a limit of calls. */
const hasCallLimit = ({ limitPerKey, limitPerAddress, keys }: Access): boolean =>
  limitPerKey !== undefined ||
  limitPerAddress !== undefined ||
  keys.some(({ limit }) => limit !== undefined && callLimitOf(limit) !== undefined);

/** The whole configuration. The `describe` texts are copied into docs/configuration.md and the JSON Schema. */
export const configSchema = z
  .strictObject({
    chains: z
      .array(chainSchema)
      .min(1)
      .refine((chains) => new Set(chains.map(({ name }) => name)).size === chains.length, {
        error: "names must differ",
      }),
    cache: cacheSchema.prefault({}),
    server: serverSchema.prefault({}),
    access: accessSchema.prefault({}),
    usage: usageSchema.prefault({}),
    tracing: tracingSchema.optional().describe("Switches tracing with OpenTelemetry on (docs/metrics.md)"),
    log: z
      .strictObject({
        level: z
          .enum(["trace", "debug", "info", "warn", "error", "silent"])
          .default("info")
          .describe("Lowest level that is logged"),
        requests: z
          .number()
          .min(0)
          .max(1)
          .default(0)
          .describe("Share of calls with a line at `info` (docs/operate.md, Logs), such as 0.01; 0 for none"),
      })
      .prefault({}),
  })
  .refine(({ access: { limitStore }, cache: { redis } }) => limitStore === "memory" || redis !== undefined, {
    error: "limits in Redis require cache.redis",
    path: ["access", "limitStore"],
  })
  .refine(({ cache: { redis }, server: { reusePort } }) => !reusePort || redis !== undefined, {
    error: "processes that share a port share limits, budgets, filters and nonces in Redis: set cache.redis",
    path: ["server", "reusePort"],
  })
  .refine(({ access, server: { reusePort } }) => !reusePort || access.limitStore === "redis" || !hasCallLimit(access), {
    error: "with server.reusePort, processes count calls together: set access.limitStore to redis",
    path: ["access", "limitStore"],
  })
  .superRefine(({ chains, server: { readiness } }, context) => {
    if (typeof readiness === "string") {
      return;
    }
    // A text that is not a name may be a credential at the wrong place.
    const isName = (text: string) => lowerCaseName.safeParse(text).success;
    const names = chains.map((each) => each.name).filter(isName);
    for (const [index, unknown] of readiness.entries()) {
      if (names.includes(unknown) || !isName(unknown)) {
        continue;
      }
      const message = `no chain has the name "${unknown}"; configured chains: ${names.join(", ")}`;
      context.addIssue({ code: "custom", message, path: ["server", "readiness", index] });
    }
  });

export type Config = z.infer<typeof configSchema>;
/** The configuration as it is written: options with a default may be missing. */
export type ConfigInput = z.input<typeof configSchema>;
export type ChainConfig = Config["chains"][number];
