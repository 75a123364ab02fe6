import type { PaymentRequired, PaymentRequirements } from "@x402/core/types";
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

export interface Challenge {
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
