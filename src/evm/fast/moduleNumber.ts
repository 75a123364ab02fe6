import { NotExecutableError } from "../notExecutableError.ts";

/** Returns a number that the WebAssembly module can represent. Throws NotExecutableError for a larger one, which geth allows. */
export const moduleNumber = (value: bigint, bits: 64 | 128, name: string): bigint => {
  if (BigInt.asUintN(bits, value) !== value) {
    throw new NotExecutableError(`the ${name} has more than ${bits} bits`);
  }
  return value;
};
