import secp256k1 from "secp256k1";
import type { ModuleMemory } from "./moduleMemory.ts";

const COMPRESSION_BYTES = 1;

/** Precompiles that are faster in the host than in WebAssembly. They read and write the module's memory. */
export const cryptoImports = (memory: () => ModuleMemory) => ({
  /** Writes the public key of a signature. Returns 0 for an invalid signature. The native module is 26 times as fast as JavaScript. */
  ecrecover: (signature: number, recovery: number, digest: number, key: number): number => {
    const at = memory();
    if (recovery > 1) {
      return 0;
    }
    try {
      const recovered = secp256k1.ecdsaRecover(at.bytes(signature, 64), recovery, at.bytes(digest, 32), false);
      at.setBytes(key, recovered.subarray(COMPRESSION_BYTES));
      return 1;
    } catch {
      // The signature is not a point of the curve. The precompile returns nothing then.
      return 0;
    }
  },
  /** Writes base ** exponent % modulus, with the length of the modulus. Each operand has an address and a length. */
  modexp: (...[base, baseLength, exponent, exponentLength, modulus, modulusLength, result]: ModexpOperands): void => {
    const at = memory();
    const number = (from: number, length: number) => (length === 0 ? 0n : BigInt(at.data(from, length)));
    const value = modularPower(
      number(base, baseLength),
      at.bytes(exponent, exponentLength),
      number(modulus, modulusLength),
    );
    if (modulusLength > 0) {
      at.setData(result, `0x${value.toString(16).padStart(modulusLength * 2, "0")}`, modulusLength);
    }
  },
});

type ModexpOperands = [number, number, number, number, number, number, number];

/** Source: EIP-198. A modulus of zero gives zero. */
const modularPower = (base: bigint, exponent: Uint8Array, modulus: bigint): bigint => {
  if (modulus <= 1n) {
    return 0n;
  }
  const start = base % modulus;
  let power = 1n;
  for (const byte of exponent) {
    for (let bit = 7; bit >= 0; bit--) {
      power = (power * power) % modulus;
      if ((byte >> bit) & 1) {
        power = (power * start) % modulus;
      }
    }
  }
  return power;
};
