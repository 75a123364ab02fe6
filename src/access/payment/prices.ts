import { createMethodLookup } from "../methodRules.ts";
import type { PriceOptions } from "./paymentOptions.ts";

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
export type PriceOf = (method: string, units: (method: string) => number) => bigint;

/** Creates the price list. The entry of a method precedes the price per unit, and the default. */
export const createPriceOf = ({ default: fallback = "0", perUnit, methods }: PriceOptions): PriceOf => {
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
export const toTokenAmount = (price: bigint, decimals: number): bigint =>
  divideUp(price, 10n ** BigInt(PRICE_DIGITS - decimals));
