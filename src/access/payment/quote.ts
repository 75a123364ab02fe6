import type { PaymentPayload, PaymentRequirements } from "@x402/core/types";
import { z } from "zod";
import { NodeError, type NodeErrorKind } from "../../core/node.ts";
import { parseEnvelope } from "../../jsonrpc/envelope.ts";
import { CODES, invalidRequest, RpcError } from "../../jsonrpc/rpcError.ts";
import { createMethodLookup } from "../methodRules.ts";

export interface PaymentOptions {
  readonly payTo: string;
  /** CAIP-2, such as `eip155:8453`. */
  readonly network: `${string}:${string}`;
  /** A token with transferWithAuthorization (EIP-3009). Name and version are those of its EIP-712 domain. */
  readonly asset: Readonly<{ address: string; name: string; version: string; decimals: number }>;
  /** Prices in whole tokens, as decimal text. Exactly one of `default` and `perUnit` is set. */
  readonly price: {
    /** Price of a call. */
    readonly default?: string | undefined;
    /** Price of a provider unit. A call costs the units of its method. */
    readonly perUnit?: string | undefined;
    /** Prices of single methods, or of `debug_*`. The longest match counts. */
    readonly methods: Readonly<Record<string, string>>;
  };
  readonly maxTimeoutSeconds: number;
  /** URL of this service in challenges. Default: from the request's Host header. */
  readonly publicUrl?: string | undefined;
  readonly facilitator: {
    readonly url: string;
    readonly headers: Readonly<Record<string, string>>;
    /** Deadline of a verification. */
    readonly timeoutMs: number;
    /** Deadline of one attempt to settle. */
    readonly settleTimeoutMs: number;
    /** Verifications at a time, and settlements at a time. */
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
  /** The terms that its payment must have. */
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

/** Prices requests. The entry of a method precedes the price per unit, and the default. */
export class PriceList {
  readonly #options: QuoteOptions;
  readonly #listed: (method: string) => bigint | undefined;
  readonly #perUnit: bigint | undefined;
  readonly #default: bigint;

  constructor(options: QuoteOptions) {
    const { default: fallback = "0", perUnit, methods } = options.payment.price;
    this.#options = options;
    this.#listed = createMethodLookup(
      Object.fromEntries(Object.entries(methods).map(([name, text]) => [name, parsePrice(text)])),
    );
    this.#perUnit = perUnit === undefined ? undefined : parsePrice(perUnit);
    this.#default = parsePrice(fallback);
  }

  /**
   * Returns the price of a body; a batch costs the sum of its calls. Undefined if it is free: without a price, or if it does not parse.
   * Throws RpcError for a notification with a price, and for a write beside other calls.
   */
  quote({ body, chain }: { readonly body: Uint8Array; readonly chain: string }): Quote | undefined {
    const envelope = this.#parse(body);
    let sum = 0n;
    let isWrite = false;
    for (const item of envelope?.items ?? []) {
      const price = "call" in item ? this.#priceOf(chain, item.call.method) : 0n;
      // The outcome of a notification is in no response, so nobody could say whether it failed.
      if (price > 0n && item.id === undefined) {
        throw invalidRequest("a call that is paid for needs an id", 400);
      }
      sum += price;
      isWrite ||= "call" in item && WRITE.test(item.call.method);
    }
    if (envelope === undefined || sum === 0n) {
      return undefined;
    }
    // Another call could fail, and withhold a batch whose transaction is already sent.
    if (isWrite && envelope.items.length > 1) {
      throw invalidRequest("a write that is paid for must be the only call of its request", 400);
    }
    return { required: this.#requirements(sum), isBatch: envelope.batch, isWrite };
  }

  #parse(body: Uint8Array): ReturnType<typeof parseEnvelope> | undefined {
    try {
      return parseEnvelope(body, this.#options.maxBatch);
    } catch (error) {
      if (error instanceof RpcError) {
        return undefined;
      }
      throw error;
    }
  }

  #priceOf(chain: string, method: string): bigint {
    const listed = this.#listed(method);
    if (listed !== undefined || this.#perUnit === undefined) {
      return listed ?? this.#default;
    }
    const parts = BigInt(Math.round(this.#options.unitsOf(chain, method) * UNIT_PARTS));
    return divideUp(this.#perUnit * parts, BigInt(UNIT_PARTS));
  }

  /** The amount is in the smallest part of the token, rounded up. */
  #requirements(price: bigint): PaymentRequirements {
    const { network, asset, payTo, maxTimeoutSeconds } = this.#options.payment;
    return {
      scheme: "exact",
      network,
      asset: asset.address,
      amount: divideUp(price, 10n ** BigInt(PRICE_DIGITS - asset.decimals)).toString(),
      payTo,
      maxTimeoutSeconds,
      extra: { name: asset.name, version: asset.version },
    };
  }
}

/** Execution reverted: geth, and Parity. The error has the return data, which is the answer. */
const REVERTED = [3, -32015];
/** The client caused these errors. A transaction that waits for its block was sent. */
const CHARGED_CODES: ReadonlySet<number> = new Set([
  ...REVERTED,
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

/** A longer header is not decoded. A payment with a signature of a smart account has about 2 KB. */
const MAX_PAYMENT_BYTES = 8_192;
/** The clock of a client may differ by this time: clients sign authorizations that began ten minutes ago. */
const CLOCK_SKEW_SECONDS = 600;
/** A settlement that was sent in time may be mined a little later. */
const EXPIRY_MARGIN_SECONDS = 60;

/** A payment that a client sent, with the right terms. Its signature is not verified. */
export interface ReadPayment {
  readonly payload: PaymentPayload;
  readonly payer: string;
  /** Identifies the payment, whatever the case of its digits. */
  readonly id: string;
  /** No settlement is possible after this time. */
  readonly seconds: number;
}

interface RefusedPayment {
  /** The reason why it is refused; a metric label. */
  readonly fault: "invalid" | "expired";
  readonly message: string;
}

/** The parts of the x402 package that read a payment. */
interface PaymentDecoder {
  decodePaymentSignatureHeader(header: string): unknown;
  parsePaymentPayload(payload: unknown): { success: true; data: unknown } | { success: false };
}

/** The version of the protocol. */
export const X402_VERSION = 2;
/** The default method of the scheme `exact`, as x402 names it. */
const TRANSFER_METHOD = "eip3009";

const address = z.string().regex(/^0x[0-9a-f]{40}$/i);
const integer = z.string().regex(/^\d{1,78}$/);

/** The payload of the scheme `exact` with EIP-3009. Another field could name another payment to the facilitator. */
const authorizationSchema = z.strictObject({
  signature: z.string().regex(/^0x[0-9a-f]+$/i),
  authorization: z.strictObject({
    from: address,
    to: address,
    value: integer,
    validAfter: integer,
    validBefore: integer,
    nonce: z.string().regex(/^0x[0-9a-f]{64}$/i),
  }),
});

const invalid = (message: string): RefusedPayment => ({ fault: "invalid", message });

const decode = (x402: PaymentDecoder, header: string): PaymentPayload | undefined => {
  try {
    const parsed = x402.parsePaymentPayload(x402.decodePaymentSignatureHeader(header));
    const payload = parsed.success ? (parsed.data as PaymentPayload) : undefined;
    return payload?.x402Version === X402_VERSION ? payload : undefined;
  } catch {
    return undefined;
  }
};

/** Decodes the header PAYMENT-SIGNATURE and compares its terms with those of the request. Returns why it is refused. */
export const readPayment = (
  x402: PaymentDecoder,
  header: string,
  required: PaymentRequirements,
): ReadPayment | RefusedPayment => {
  if (header.length > MAX_PAYMENT_BYTES) {
    return invalid(`the header PAYMENT-SIGNATURE is longer than ${MAX_PAYMENT_BYTES} bytes`);
  }
  const payload = decode(x402, header);
  if (payload === undefined) {
    return invalid("the header PAYMENT-SIGNATURE is not a payment of x402 version 2");
  }
  const signed = authorizationSchema.safeParse(payload.payload).data;
  const { to = required.payTo, value = required.amount } = signed?.authorization ?? {};
  const { scheme, network, asset, payTo, amount, extra } = payload.accepted;
  const terms = [
    ["scheme", scheme, required.scheme],
    ["network", network, required.network],
    ["asset", asset, required.asset],
    ["recipient", payTo, required.payTo],
    ["amount", amount, required.amount],
    ["asset transfer method", String(extra?.assetTransferMethod ?? TRANSFER_METHOD), TRANSFER_METHOD],
    ["recipient", to, required.payTo],
    ["amount", String(BigInt(value)), required.amount],
  ] as const;
  const wrong = terms.find(([, term, expected]) => term.toLowerCase() !== expected.toLowerCase());
  if (wrong !== undefined) {
    return invalid(`wrong ${wrong[0]}: expected ${wrong[2]}`);
  }
  if (signed === undefined) {
    return invalid("the payment is not an authorization of EIP-3009");
  }
  const { from, validBefore, nonce } = signed.authorization;
  const remainingSeconds = BigInt(validBefore) - BigInt(Math.floor(Date.now() / 1_000));
  if (remainingSeconds <= 0n) {
    return { fault: "expired", message: "the payment has expired" };
  }
  if (remainingSeconds > BigInt(required.maxTimeoutSeconds + CLOCK_SKEW_SECONDS)) {
    return invalid(`the payment is valid for longer than ${required.maxTimeoutSeconds} seconds`);
  }
  return {
    // Nothing else of the client reaches the facilitator: no extension, and no terms of its own.
    payload: { x402Version: X402_VERSION, accepted: required, payload: signed },
    payer: from,
    id: [required.network, required.asset, from, nonce].join(":").toLowerCase(),
    seconds: Number(remainingSeconds) + EXPIRY_MARGIN_SECONDS,
  };
};
