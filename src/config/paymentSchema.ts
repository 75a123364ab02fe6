import { z } from "zod";
import { count, methodPattern, urlWith } from "./optionTypes.ts";

const MAX_DECIMALS = 18;

const address = z.string().regex(/^0x[0-9a-fA-F]{40}$/, "an address: 0x and 40 hex digits");
/** Text, because a number of YAML is not exact. */
const price = z.string().regex(/^\d{1,18}(?:\.\d{1,24})?$/, 'tokens as a decimal number in quotes, such as "0.0001"');

const priceSchema = z
  .strictObject({
    default: price.optional().describe("Price of a call in tokens, in quotes; instead of `perUnit`"),
    perUnit: price
      .optional()
      .describe("Price of a provider unit; a call costs the units of its method (`usage.prices`)"),
    methods: z
      .record(methodPattern, price)
      .default({})
      .describe('Prices by method or `debug_*`; "0" for a free method. The longest match counts'),
  })
  .refine((prices) => (prices.default === undefined) !== (prices.perUnit === undefined), {
    error: "set either default or perUnit",
  });

const facilitatorSchema = z.strictObject({
  url: urlWith("http", "https").describe("Service that verifies and settles payments"),
  headers: z.record(z.string(), z.string()).default({}).describe("Headers of each request to it, for example its key"),
  timeoutMs: count(5_000).describe("Deadline of a verification; then 503, and nothing is charged"),
  settleTimeoutMs: count(30_000).describe("Deadline of one attempt to settle; there are two"),
  maxConcurrent: count(32).describe("Verifications at a time, and settlements at a time; clients take turns"),
});

/** The options of payments: `access.payment`. */
export const paymentSchema = z.strictObject({
  payTo: address.describe("Address that receives the payments"),
  network: z
    .templateLiteral(["eip155:", z.int().positive()])
    .describe("Chain of the token in the form of CAIP-2, such as eip155:8453"),
  asset: z.strictObject({
    address: address.describe("Token with transferWithAuthorization (EIP-3009), for example USDC"),
    name: z.string().min(1).describe("Name in the token's EIP-712 domain"),
    version: z.string().min(1).describe("Version in the token's EIP-712 domain"),
    decimals: z.int().min(0).max(MAX_DECIMALS).default(6).describe("Decimals of the token"),
  }),
  price: priceSchema,
  maxTimeoutSeconds: count(120).describe("Longest time for which a payment is valid"),
  publicUrl: urlWith("http", "https")
    .optional()
    .describe("URL of this service in challenges; default: http:// and the Host header"),
  facilitator: facilitatorSchema,
  redis: z
    .string()
    .optional()
    .describe("Redis of the reservations, which the cache cannot fill; applies at a restart; default: `cache.redis`"),
});
