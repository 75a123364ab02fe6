import { NodeError, type NodeErrorKind } from "../../core/node.ts";
import { parseEnvelope } from "../../jsonrpc/envelope.ts";
import { CODES, RpcError } from "../../jsonrpc/rpcError.ts";
import { createMethodLookup } from "../methodRules.ts";

/** Prices in whole tokens, as decimal text. Exactly one of `default` and `perUnit` is set. */
export interface PriceOptions {
  /** Price of a call. */
  readonly default?: string | undefined;
  /** Price of a provider unit. A call costs the units of its method. */
  readonly perUnit?: string | undefined;
  /** Prices of single methods, or of `debug_*`. The longest match counts. */
  readonly methods: Readonly<Record<string, string>>;
}

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
  readonly payment: { readonly price: PriceOptions; readonly asset: { readonly decimals: number } };
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

/** Prices are exact integers of 10^-24 tokens, so that only the sum of a request is rounded. */
const PRICE_DIGITS = 24;

/** Units may be fractions. They count in millionths. */
const UNIT_PARTS = 1_000_000;

const parsePrice = (text: string): bigint => {
  const [whole = "", fraction = ""] = text.split(".");
  return BigInt(whole + fraction.padEnd(PRICE_DIGITS, "0"));
};

const divideUp = (amount: bigint, divisor: bigint): bigint => (amount + divisor - 1n) / divisor;

/** Returns the price of one call. `units` returns the provider units of a method. */
type PriceOf = (method: string, units: (method: string) => number) => bigint;

/** Creates the price list. The entry of a method precedes the price per unit, and the default. */
const createPriceOf = ({ default: fallback = "0", perUnit, methods }: PriceOptions): PriceOf => {
  const listedPrice = createMethodLookup(
    Object.fromEntries(Object.entries(methods).map(([name, text]) => [name, parsePrice(text)])),
  );
  const unitPrice = perUnit === undefined ? undefined : parsePrice(perUnit);
  const fallbackPrice = parsePrice(fallback);
  return (method, units) => {
    const listed = listedPrice(method);
    if (listed !== undefined || unitPrice === undefined) {
      return listed ?? fallbackPrice;
    }
    const parts = BigInt(Math.round(units(method) * UNIT_PARTS));
    return divideUp(unitPrice * parts, BigInt(UNIT_PARTS));
  };
};

/** Converts a price into the smallest part of the token, rounded up. */
const toTokenAmount = (price: bigint, decimals: number): bigint =>
  divideUp(price, 10n ** BigInt(PRICE_DIGITS - decimals));

/** Execution reverted: geth, and Parity. The error has the return data, which is the answer. */
const REVERTED = [3, -32015];
/** The client caused these errors. A transaction that waits for its block was sent. */
const CHARGED_CODES: ReadonlySet<number> = new Set([
  ...REVERTED,
  CODES.NOT_CONFIRMED,
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
  if (error instanceof NodeError) {
    return CHARGED_KINDS.has(error.kind);
  }
  return CHARGED_CODES.has(error.code);
};
