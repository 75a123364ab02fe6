import type { PaymentPayload, PaymentRequired, PaymentRequirements } from "@x402/core/types";
import { z } from "zod";
import { CODES, RpcError } from "../../jsonrpc/rpcError.ts";
import type { PriceOptions } from "./bill.ts";
import { type FacilitatorOptions, type X402, X402_VERSION } from "./facilitator.ts";

/** A token with transferWithAuthorization (EIP-3009). Name and version are those of its EIP-712 domain. */
interface PaymentAsset {
  readonly address: string;
  readonly name: string;
  readonly version: string;
  readonly decimals: number;
}

export interface PaymentOptions {
  readonly payTo: string;
  /** CAIP-2, such as `eip155:8453`. */
  readonly network: `${string}:${string}`;
  readonly asset: PaymentAsset;
  readonly price: PriceOptions;
  readonly maxTimeoutSeconds: number;
  /** URL of this service in challenges. Default: from the request's Host header. */
  readonly publicUrl?: string | undefined;
  readonly facilitator: FacilitatorOptions;
}

const PAYMENT_REQUIRED_STATUS = 402;
/** Browsers show scripts the headers of the protocol then. */
export const EXPOSED = ["Access-Control-Expose-Headers", "PAYMENT-REQUIRED, PAYMENT-RESPONSE"] as const;
/** A Host header with other characters is not copied into a challenge. */
const HOST = /^[\w.:[\]-]{1,255}$/;

/** The error of a request without a valid payment (402), with its challenge. */
export class PaymentError extends RpcError {
  override readonly name = "PaymentError";
  /** Header names and values, in one flat list. */
  readonly headers: readonly string[];

  constructor(message: string, challenge: PaymentRequired, headers: readonly string[]) {
    super(CODES.PAYMENT_REQUIRED, message, { status: PAYMENT_REQUIRED_STATUS, data: challenge });
    this.headers = headers;
  }
}

/** Creates the error of a request that no payment opens: a WebSocket, or a request that is passed through. */
export const needsKey = (): RpcError =>
  new RpcError(CODES.UNAUTHORIZED, "only JSON-RPC by POST can be paid for: this request needs an API key", {
    status: 401,
  });

/** Returns the terms of one request, for a price in the smallest part of the token. */
export const requirementsOf = (options: PaymentOptions, amount: bigint): PaymentRequirements => {
  const { network, asset, payTo, maxTimeoutSeconds } = options;
  return {
    scheme: "exact",
    network,
    asset: asset.address,
    amount: amount.toString(),
    payTo,
    maxTimeoutSeconds,
    extra: { name: asset.name, version: asset.version },
  };
};

/** Returns the URL that a challenge names: of the chain, without the query. */
export const resourceUrl = (publicUrl: string | undefined, host: string | undefined, target: string): string => {
  const base = publicUrl ?? (host !== undefined && HOST.test(host) ? `http://${host}` : "http://localhost");
  const [path = "/"] = target.split("?", 1);
  return `${base.replace(/\/+$/, "")}${path.startsWith("/") ? path : "/"}`;
};

interface Challenge {
  readonly required: PaymentRequirements;
  readonly url: string;
  /** Further headers of the response. */
  readonly headers?: readonly string[];
}

/** Creates the response to a request without a valid payment: header and body of x402, version 2. */
export const createChallenge = (
  x402: X402,
  message: string,
  { required, url, headers = [] }: Challenge,
): PaymentError => {
  const challenge: PaymentRequired = {
    x402Version: X402_VERSION,
    error: message,
    resource: { url, description: "JSON-RPC", mimeType: "application/json" },
    accepts: [required],
  };
  const all = [
    "PAYMENT-REQUIRED",
    x402.encodePaymentRequiredHeader(challenge),
    "Cache-Control",
    x402.PAYMENT_REQUIRED_CACHE_CONTROL,
    ...EXPOSED,
    ...headers,
  ];
  return new PaymentError(message, challenge, all);
};

/** A longer header is not decoded. A payment with a signature of a smart account has about 2 KB. */
const MAX_PAYMENT_BYTES = 8_192;
/** The clock of a client may differ by this time: clients sign authorizations that began ten minutes ago. */
const CLOCK_SKEW_SECONDS = 600;
/** A settlement that was sent in time may be mined a little later. */
const EXPIRY_MARGIN_SECONDS = 60;

/** The reason why a payment is refused; a metric label. */
type PaymentFault = "invalid" | "expired";

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
  readonly fault: PaymentFault;
  readonly message: string;
}

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
const isSame = (one: string, other: string): boolean => one.toLowerCase() === other.toLowerCase();

type ClientPayload = Pick<PaymentPayload, "accepted" | "payload">;

const decode = (x402: X402, header: string): ClientPayload | undefined => {
  try {
    const parsed = x402.parsePaymentPayload(x402.decodePaymentSignatureHeader(header));
    return parsed.success && parsed.data.x402Version === X402_VERSION ? (parsed.data as ClientPayload) : undefined;
  } catch {
    return undefined;
  }
};

/** Returns the first difference between the terms that the client accepted and those of this request. */
const differenceOf = (accepted: PaymentRequirements, required: PaymentRequirements): string | undefined => {
  const { scheme, network, asset, payTo, amount, extra } = accepted;
  if (scheme !== required.scheme) {
    return `wrong scheme: expected ${required.scheme}`;
  }
  if (network !== required.network) {
    return `wrong network: expected ${required.network}`;
  }
  if (!isSame(asset, required.asset)) {
    return `wrong asset: expected ${required.asset}`;
  }
  if (!isSame(payTo, required.payTo)) {
    return `wrong recipient: expected ${required.payTo}`;
  }
  if (amount !== required.amount) {
    return `wrong amount: expected ${required.amount}`;
  }
  const isOtherMethod = extra?.assetTransferMethod !== undefined && extra.assetTransferMethod !== "eip3009";
  return isOtherMethod ? "wrong asset transfer method: expected eip3009" : undefined;
};

/** Decodes the header PAYMENT-SIGNATURE and compares its terms with those of the request. Returns why it is refused. */
export const readPayment = (
  x402: X402,
  header: string,
  required: PaymentRequirements,
  nowSeconds: number,
): ReadPayment | RefusedPayment => {
  if (header.length > MAX_PAYMENT_BYTES) {
    return invalid(`the header PAYMENT-SIGNATURE is longer than ${MAX_PAYMENT_BYTES} bytes`);
  }
  const payload = decode(x402, header);
  if (payload === undefined) {
    return invalid("the header PAYMENT-SIGNATURE is not a payment of x402 version 2");
  }
  const difference = differenceOf(payload.accepted, required);
  if (difference !== undefined) {
    return invalid(difference);
  }
  const authorization = authorizationSchema.safeParse(payload.payload);
  if (!authorization.success) {
    return invalid("the payment is not an authorization of EIP-3009");
  }
  const { from, to, value, validBefore, nonce } = authorization.data.authorization;
  if (!isSame(to, required.payTo)) {
    return invalid(`wrong recipient: expected ${required.payTo}`);
  }
  if (BigInt(value) !== BigInt(required.amount)) {
    return invalid(`wrong amount: expected ${required.amount}`);
  }
  const restSeconds = BigInt(validBefore) - BigInt(nowSeconds);
  if (restSeconds <= 0n) {
    return { fault: "expired", message: "the payment has expired" };
  }
  if (restSeconds > BigInt(required.maxTimeoutSeconds + CLOCK_SKEW_SECONDS)) {
    return invalid(`the payment is valid for longer than ${required.maxTimeoutSeconds} seconds`);
  }
  return {
    // Nothing else of the client reaches the facilitator: no extension, and no terms of its own.
    payload: { x402Version: X402_VERSION, accepted: required, payload: authorization.data },
    payer: from,
    id: [required.network, required.asset, from, nonce].join(":").toLowerCase(),
    seconds: Number(restSeconds) + EXPIRY_MARGIN_SECONDS,
  };
};
