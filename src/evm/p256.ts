import { p256 } from "@noble/curves/nist.js";

const INPUT_BYTES = 160;
const UNCOMPRESSED = 4;
const NOTHING = new Uint8Array(0);

/** RIP-7212: digest, r, s, x, y in; the word one out, or nothing where the signature is not right. */
export const verifyP256 = (input: Uint8Array): Uint8Array => {
  if (input.length !== INPUT_BYTES) return NOTHING;
  const key = new Uint8Array(65);
  key[0] = UNCOMPRESSED;
  key.set(input.subarray(96), 1);
  try {
    const isRight = p256.verify(input.subarray(32, 96), input.subarray(0, 32), key, { prehash: false, lowS: false });
    if (!isRight) return NOTHING;
  } catch {
    // Not a point, or numbers out of range: like a wrong signature.
    return NOTHING;
  }
  const one = new Uint8Array(32);
  one[31] = 1;
  return one;
};
