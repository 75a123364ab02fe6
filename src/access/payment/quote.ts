import type { PaymentPayload, PaymentRequirements } from "@x402/core/types";
import { z } from "zod";
import { NodeError, type NodeErrorKind } from "../../core/node.ts";
import { type Envelope, parseEnvelope } from "../../jsonrpc/envelope.ts";
import { CODES, invalidRequest, RpcError } from "../../jsonrpc/rpcError.ts";
import { createMethodLookup } from "../methodRules.ts";

/** The options `access.payment`. Exactly one of `default` and `perUnit` is set. */
export interface PaymentOptions {
  readonly payTo: string;
  /** CAIP-2, such as `eip155:8453`. */
  readonly network: `${string}:${string}`;
  readonly asset: Readonly<{ address: string; name: string; version: string; decimals: number }>;
  /** In whole tokens, as decimal text. */
  readonly price: {
    readonly default?: string | undefined;
    readonly perUnit?: string | undefined;
    readonly methods: Readonly<Record<string, string>>;
  };
  readonly maxTimeoutSeconds: number;
  readonly publicUrl?: string | undefined;
  readonly facilitator: {
    readonly url: string;
    readonly headers: Readonly<Record<string, string>>;
    readonly timeoutMs: number;
    readonly settleTimeoutMs: number;
    readonly maxConcurrent: number;
  };
}

export interface QuoteOptions {
  readonly payment: PaymentOptions;
  readonly maxBatch: number;
  /** Returns the units of one call. */
  unitsOf(chain: string, method: string): number;
}

/** The price of one request. */
export interface Quote {
  /** The terms that its payment must have. The amount is in the smallest part of the token, rounded up. */
  readonly required: PaymentRequirements;
  readonly isBatch: boolean;
  /** The node's acceptance is what the client pays for. No lost response and no departure takes it back. */
  readonly isWrite: boolean;
}

/** Prices are exact integers of 10^-24 tokens, so that only the sum of a request is rounded. */
const PRICE_DIGITS = 24;
/** Units may be fractions. They count in millionths. */
const UNIT_PARTS = 1_000_000;
/** Methods that send something to the network, such as `eth_sendRawTransaction`, `eth_sendBundle` and `mev_sendBundle`. */
const WRITE = /_(?:send|submit|cancel)/i;

const parsePrice = (text: string): bigint => {
  const [whole = "", fraction = ""] = text.split(".");
  return BigInt(whole + fraction.padEnd(PRICE_DIGITS, "0"));
};

const divideUp = (amount: bigint, divisor: bigint): bigint => (amount + divisor - 1n) / divisor;

/** Returns the function that prices a call. The entry of a method precedes the price per unit, and the default. */
const createPrices = ({ payment, unitsOf }: QuoteOptions): ((chain: string, method: string) => bigint) => {
  const { default: fallback = "0", perUnit, methods } = payment.price;
  const listed = createMethodLookup(
    Object.fromEntries(Object.entries(methods).map(([name, text]) => [name, parsePrice(text)])),
  );
  const [pricePerUnit, defaultPrice] = [parsePrice(perUnit ?? "0"), parsePrice(fallback)];
  const ofUnits = (units: number): bigint =>
    divideUp(pricePerUnit * BigInt(Math.round(units * UNIT_PARTS)), BigInt(UNIT_PARTS));
  return (chain, method) => listed(method) ?? (perUnit === undefined ? defaultPrice : ofUnits(unitsOf(chain, method)));
};

/**
 * Returns the function that prices a body; a batch costs the sum of its calls. Undefined is free: no price, or a body that does not
 * parse. It throws RpcError for a notification with a price, and for a write beside other calls.
 */
export const createQuotes = (options: QuoteOptions) => {
  const { network, asset, payTo, maxTimeoutSeconds } = options.payment;
  const priceOf = createPrices(options);
  const terms = { scheme: "exact", network, asset: asset.address, payTo, maxTimeoutSeconds };
  const extra = { name: asset.name, version: asset.version };
  return (body: Uint8Array, chain: string): Quote | undefined => {
    const { items, batch: isBatch } = parse(body, options.maxBatch);
    let sum = 0n;
    let isWrite = false;
    for (const item of items) {
      const price = "call" in item ? priceOf(chain, item.call.method) : 0n;
      // The outcome of a notification is in no response, so nobody could say whether it failed.
      if (price > 0n && item.id === undefined) {
        throw invalidRequest("a call that is paid for needs an id", 400);
      }
      sum += price;
      isWrite ||= "call" in item && WRITE.test(item.call.method);
    }
    if (sum === 0n) {
      return undefined;
    }
    // Another call could fail, and withhold a batch whose transaction is already sent.
    if (isWrite && items.length > 1) {
      throw invalidRequest("a write that is paid for must be the only call of its request", 400);
    }
    const amount = divideUp(sum, 10n ** BigInt(PRICE_DIGITS - asset.decimals)).toString();
    return { required: { ...terms, amount, extra }, isBatch, isWrite };
  };
};

/** A body that does not parse has no calls. The endpoint answers it with its error. */
const parse = (body: Uint8Array, maxBatch: number): Envelope => {
  try {
    return parseEnvelope(body, maxBatch);
  } catch (error) {
    if (error instanceof RpcError) {
      return { batch: false, items: [] };
    }
    throw error;
  }
};

/** The client caused these errors. 3 and -32015: a revert, whose data is the answer. A transaction that waits for its block was sent. */
const CHARGED_CODES: ReadonlySet<number> = new Set([
  3,
  -32015,
  CODES.NOT_CONFIRMED,
  CODES.QUEUED,
  CODES.NONCE_GAP,
  CODES.INVALID_REQUEST,
  CODES.INVALID_PARAMS,
]);
/** The node's answer to this call, whatever its code. */
const CHARGED_KINDS: ReadonlySet<NodeErrorKind> = new Set(["revert", "rejected", "executionFailed", "invalidParams"]);

/** Whether a call that ended with this error costs its price. Any error that may be that of forebay or a node costs nothing. */
export const isCharged = (error: RpcError): boolean => {
  if (error.status >= 400) {
    return false;
  }
  return error instanceof NodeError ? CHARGED_KINDS.has(error.kind) : CHARGED_CODES.has(error.code);
};

/** The clock of a client may differ by this time: clients sign authorizations that began ten minutes ago. */
const CLOCK_SKEW_SECONDS = 600;
/** A settlement that was sent in time may be mined a little later. */
const EXPIRY_MARGIN_SECONDS = 60;

/** A payment that a client signed. The facilitator verifies it. */
export interface SignedPayment {
  readonly payload: PaymentPayload;
  readonly payer: string;
  /** Identifies the payment, whatever the case of its digits. */
  readonly id: string;
  /** No settlement is possible after this time. */
  readonly seconds: number;
}

/** The version of the protocol. */
export const X402_VERSION = 2;

/** The scheme `exact` with EIP-3009. The other fields are those of the facilitator to judge. */
const paymentSchema = z.object({
  x402Version: z.literal(X402_VERSION),
  payload: z.object({
    signature: z.string(),
    authorization: z.object({
      from: z.string().regex(/^0x[0-9a-f]{40}$/i),
      to: z.string(),
      value: z.string(),
      validAfter: z.string(),
      validBefore: z.string().regex(/^\d{1,78}$/),
      nonce: z.string().regex(/^0x[0-9a-f]{64}$/i),
    }),
  }),
});

/** Reads a decoded header PAYMENT-SIGNATURE. Returns a text why it is refused. */
export const readPayment = (decoded: unknown, required: PaymentRequirements): SignedPayment | string => {
  const payload = paymentSchema.safeParse(decoded).data?.payload;
  if (payload === undefined) {
    return "the header PAYMENT-SIGNATURE is not a payment of x402 version 2 with EIP-3009";
  }
  const { from, validBefore, nonce } = payload.authorization;
  const remainingSeconds = BigInt(validBefore) - BigInt(Math.floor(Date.now() / 1_000));
  if (remainingSeconds <= 0n) {
    return "the payment has expired";
  }
  // It is reserved for that long.
  if (remainingSeconds > BigInt(required.maxTimeoutSeconds + CLOCK_SKEW_SECONDS)) {
    return `the payment is valid for longer than ${required.maxTimeoutSeconds} seconds`;
  }
  return {
    // Nothing else of the client reaches the facilitator: no extension, and no terms of its own.
    payload: { x402Version: X402_VERSION, accepted: required, payload },
    payer: from,
    id: [required.network, required.asset, from, nonce].join(":").toLowerCase(),
    seconds: Number(remainingSeconds) + EXPIRY_MARGIN_SECONDS,
  };
};
