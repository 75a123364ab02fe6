import type * as Http from "@x402/core/http";
import type * as Schemas from "@x402/core/schemas";
import type * as Types from "@x402/core/types";
import type { FacilitatorOptions } from "./paymentOptions.ts";

/** The parts of the x402 package that a server needs. */
export type X402 = Pick<
  typeof Http,
  | "HTTPFacilitatorClient"
  | "PAYMENT_REQUIRED_CACHE_CONTROL"
  | "decodePaymentSignatureHeader"
  | "encodePaymentRequiredHeader"
  | "encodePaymentResponseHeader"
> &
  Pick<typeof Schemas, "parsePaymentPayload"> &
  Pick<typeof Types, "SettleError" | "VerifyError">;

export type FacilitatorClient = InstanceType<X402["HTTPFacilitatorClient"]>;

/** The version of the protocol. */
export const X402_VERSION = 2;

/** Creates the package's client of a facilitator, whose requests have this deadline. */
export const createFacilitatorClient = (
  { HTTPFacilitatorClient }: Pick<X402, "HTTPFacilitatorClient">,
  { url, headers }: Pick<FacilitatorOptions, "url" | "headers">,
  timeoutMs: number,
): FacilitatorClient => {
  const createAuthHeaders = async () => ({ verify: headers, settle: headers, supported: headers });
  return new HTTPFacilitatorClient({ url, timeoutMs, createAuthHeaders });
};

/** Loads the package. Rejects if it is not installed. */
export const loadX402 = async (): Promise<X402> => {
  try {
    const [http, schemas, types] = await Promise.all([
      import("@x402/core/http"),
      import("@x402/core/schemas"),
      import("@x402/core/types"),
    ]);
    return { ...http, ...schemas, ...types };
  } catch (error) {
    throw new Error("access.payment needs a package that is not installed: npm install @x402/core", { cause: error });
  }
};
