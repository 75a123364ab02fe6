import { parseEnvelope } from "../../jsonrpc/envelope.ts";
import { CODES, RpcError } from "../../jsonrpc/rpcError.ts";
import type { PaymentOptions } from "./paymentOptions.ts";
import { createPriceOf, toTokenAmount } from "./prices.ts";

/** The price of one request. */
export interface Bill {
  /** In the smallest part of the token. */
  readonly amount: bigint;
  readonly isBatch: boolean;
  /** The node's acceptance is what the client pays for. No lost response and no departure takes it back. */
  readonly isWrite: boolean;
}

/** Returns the price of a body. Undefined if the body does not parse: it gets its error for nothing. */
export type BillOf = (request: { readonly body: Uint8Array; readonly chain: string }) => Bill | undefined;

export interface BillsOptions {
  readonly payment: Pick<PaymentOptions, "price" | "asset">;
  readonly maxBatch: number;
  /** Returns the units of one call. */
  unitsOf(chain: string, method: string): number;
}

const parse = (body: Uint8Array, maxBatch: number): ReturnType<typeof parseEnvelope> | undefined => {
  try {
    return parseEnvelope(body, maxBatch);
  } catch (error) {
    if (error instanceof RpcError) {
      return undefined;
    }
    throw error;
  }
};

/** Methods that send something to the network, such as `eth_sendRawTransaction`, `eth_sendBundle` and `mev_sendBundle`. */
const WRITE = /_(?:send|submit|cancel)/i;

const mixedWrite = (): RpcError =>
  new RpcError(
    CODES.INVALID_REQUEST,
    "Invalid request: a write that is paid for must be the only call of its request",
    {
      status: 400,
    },
  );

const notification = (): RpcError =>
  new RpcError(CODES.INVALID_REQUEST, "Invalid request: a call that is paid for needs an id", { status: 400 });

/** Creates the pricing of bodies. A batch costs the sum of its calls. It throws RpcError for a notification with a price, and for a write beside other calls. */
export const createBills = ({ payment: { price, asset }, maxBatch, unitsOf }: BillsOptions): BillOf => {
  const priceOf = createPriceOf(price);
  return ({ body, chain }) => {
    const envelope = parse(body, maxBatch);
    if (envelope === undefined) {
      return undefined;
    }
    let sum = 0n;
    let isWrite = false;
    for (const item of envelope.items) {
      const own = "call" in item ? priceOf(item.call.method, (method) => unitsOf(chain, method)) : 0n;
      // The outcome of a notification is in no response, so that nobody could say whether it failed.
      if (own > 0n && item.id === undefined) {
        throw notification();
      }
      sum += own;
      isWrite ||= "call" in item && WRITE.test(item.call.method);
    }
    // Another call could fail, and withhold a batch whose transaction is already sent.
    if (sum > 0n && isWrite && envelope.items.length > 1) {
      throw mixedWrite();
    }
    return { amount: toTokenAmount(sum, asset.decimals), isBatch: envelope.batch, isWrite };
  };
};
