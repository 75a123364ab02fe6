import { isQuantity } from "../ethereum/hex.ts";
import { isNumeric } from "../verification/resultForms.ts";
import { formatCanonical } from "./canonicalJson.ts";

/** Larger results must have equal bytes, because parsing them would block the event loop. */
const MAX_PARSED_BYTES = 64 * 1024;

const decoder = new TextDecoder();

const parse = (body: Uint8Array): unknown => {
  try {
    return JSON.parse(decoder.decode(body));
  } catch {
    return undefined;
  }
};

/**
 * Whether two results of one method mean the same. Nodes differ in the case of hex digits, in leading zeros of numbers, in
 * whitespace, and in the order of members.
 */
export const isSameResult = (method: string, one: Uint8Array, other: Uint8Array): boolean => {
  if (Buffer.compare(one, other) === 0) {
    return true;
  }
  if (one.byteLength > MAX_PARSED_BYTES || other.byteLength > MAX_PARSED_BYTES) {
    return false;
  }
  const values = [parse(one), parse(other)] as const;
  if (isNumeric(method)) {
    return values.every(isQuantity) && BigInt(String(values[0])) === BigInt(String(values[1]));
  }
  const [first, second] = values.map((value) => formatCanonical(value).toLowerCase());
  return first === second && values[0] !== undefined;
};
