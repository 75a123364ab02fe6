import { z } from "zod";
import { milliseconds } from "./optionTypes.ts";

const limit = (fallback: number) => z.number().int().nonnegative().default(fallback);

/** The options of followed state: `chains[].state`. */
export const stateSchema = z.strictObject({
  follow: z
    .union([z.enum(["auto", "plain"]), z.literal(false)])
    .default("auto")
    .describe(
      "Follow state from block to block: `auto` for reads and calls except on development nodes, `plain` for reads of single values, or false",
    ),
  source: z
    .enum(["auto", "feed", "accessList", "trace", "execute"])
    .default("auto")
    .describe("Source of a block's writes: one of them, or `auto` for feed, then access list, then trace"),
  agree: z
    .literal([1, 2])
    .default(1)
    .describe("Origins that must return the same value or call result before it is served; 2 reads each twice"),
  probation: z
    .strictObject({
      blocks: limit(32).describe("Blocks at which a value of a trace has to agree with a node"),
      values: limit(1_000).describe("Values of a trace that have to agree with a node, before they answer reads"),
    })
    .prefault({}),
  learning: z
    .strictObject({
      share: z
        .number()
        .min(0)
        .max(1)
        .default(0.08)
        .describe("Share of the provider units of forwarded state reads and calls that learning may cost"),
      unitsPerMinute: limit(30_000).describe("Maximum provider units a minute of learning, on all nodes together"),
    })
    .prefault({}),
  never: z
    .array(z.string().regex(/^0x[0-9a-fA-F]{40}$/, "an address, 20 bytes of hex"))
    .default([])
    .describe("Accounts whose state is always read from a node"),
  waitMs: milliseconds(100).describe("Maximum wait of a read at a new head for that block's writes"),
  units: z
    .record(z.string(), z.number().nonnegative())
    .default({})
    .describe("Provider units of a call on this chain, by method or `debug_*`; replaces entries of `usage`"),
  cacheBytes: z
    .number()
    .int()
    .nonnegative()
    .default(256 * 1024 * 1024)
    .describe(
      "Maximum size of known state values in bytes; 0 disables them. Executions cache a quarter of it more, and as many bytes of codes",
    ),
});
