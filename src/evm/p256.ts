import { p256 } from "@noble/curves/nist.js";

const INPUT_BYTES = 160;
const UNCOMPRESSED = 4;
const NOTHING = new Uint8Array(0);

/**
 * Executes the precompile P256VERIFY. The input is digest, r, s, x and y, 32 bytes each.
 * Returns the word one for a valid signature, otherwise no bytes. Source: RIP-7212.
 */
export const verifyP256 = (input: Uint8Array): Uint8Array => {
  if (input.length !== INPUT_BYTES) {
    return NOTHING;
  }
  const key = new Uint8Array(65);
  key[0] = UNCOMPRESSED;
  key.set(input.subarray(96), 1);
  try {
    const isValid = p256.verify(input.subarray(32, 96), input.subarray(0, 32), key, { prehash: false, lowS: false });
    if (!isValid) {
      return NOTHING;
    }
  } catch {
    // The key is not a point of the curve, or a number is out of range. RIP-7212 treats this as an invalid signature.
    return NOTHING;
  }
  const one = new Uint8Array(32);
  one[31] = 1;
  return one;
};
