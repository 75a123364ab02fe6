import { EVMError, type PrecompileFunc, type PrecompileInput } from "@ethereumjs/evm";
import { describeBlsFault } from "./blsFault.ts";
import { modexpGas, modexpLengths, wordAt } from "./modexpGas.ts";

const { errorMessages } = EVMError;
type Result = Awaited<ReturnType<PrecompileFunc>>;
type LibraryError = EVMError["error"];

const BN254_MODULUS = 0x30644e72e131a029b85045b68181585d97816a916871ca8d3c208c16d87cfd47n;
const BN254_BYTES = 32;
/** Bytes that addition and multiplication read as points. */
const BN254_ADD_BYTES = 128;
const BN254_MUL_BYTES = 64;
/** EIP-7823 */
const MAX_MODEXP_BYTES = 1024n;
const INPUT_LENGTH = "invalid input length";

/** Returns geth's error text for an input that a precompile rejects, or `undefined` for the library's text. Source: geth, core/vm/contracts.go, crypto/bn256/gnark. */
type Describe = (input: PrecompileInput, error: LibraryError) => string | undefined;

const describeBn254 =
  (pointBytes: number | undefined): Describe =>
  ({ data }, error) => {
    if (error === errorMessages.INVALID_INPUT_LENGTH) {
      return "bad elliptic curve pairing size";
    }
    const points = data.subarray(0, pointBytes);
    for (let at = 0; at < points.length; at += BN254_BYTES) {
      if (wordAt(points, at) >= BN254_MODULUS) {
        return "invalid fp.Element encoding";
      }
    }
    return "point is not on curve";
  };

const describeKzg: Describe = (_, error) => {
  if (error === errorMessages.INVALID_INPUT_LENGTH) {
    return INPUT_LENGTH;
  }
  return error === errorMessages.INVALID_COMMITMENT ? "mismatched versioned hash" : "error verifying kzg proof";
};

/** The library returns "out of gas" for lengths above the limit of EIP-7823. */
const describeModexp: Describe = ({ data, common, gasLimit }, error) => {
  if (error !== errorMessages.OUT_OF_GAS || !common.isActivatedEIP(7823)) {
    return undefined;
  }
  const isTooLong = modexpLengths(data).some((length) => length > MAX_MODEXP_BYTES);
  return isTooLong && modexpGas(data) <= gasLimit
    ? "one or more of base/exponent/modulus length exceeded 1024 bytes"
    : undefined;
};

const BLAKE2F_BYTES = 213;
const describeBlake2f: Describe = ({ data }) => (data.length === BLAKE2F_BYTES ? "invalid final flag" : INPUT_LENGTH);

const bls =
  (shape: Parameters<typeof describeBlsFault>[1]): Describe =>
  ({ data }, error) =>
    error === errorMessages.BLS_12_381_INVALID_INPUT_LENGTH || error === errorMessages.BLS_12_381_INPUT_EMPTY
      ? INPUT_LENGTH
      : describeBlsFault(data, shape);

const at = (last: string): string => last.padStart(40, "0");

const DESCRIBE = new Map<string, Describe>([
  [at("05"), describeModexp],
  [at("06"), describeBn254(BN254_ADD_BYTES)],
  [at("07"), describeBn254(BN254_MUL_BYTES)],
  [at("08"), describeBn254(undefined)],
  [at("09"), describeBlake2f],
  [at("0a"), describeKzg],
  [at("0b"), bls({ parts: ["g1"], scalarBytes: 0, checksGroup: false })],
  [at("0c"), bls({ parts: ["g1"], scalarBytes: 32, checksGroup: true })],
  [at("0d"), bls({ parts: ["g2"], scalarBytes: 0, checksGroup: false })],
  [at("0e"), bls({ parts: ["g2"], scalarBytes: 32, checksGroup: true })],
  [at("0f"), bls({ parts: ["g1", "g2"], scalarBytes: 0, checksGroup: true })],
  [at("10"), bls({ parts: ["fp"], scalarBytes: 0, checksGroup: false })],
  [at("11"), bls({ parts: ["fp", "fp"], scalarBytes: 0, checksGroup: false })],
]);

/** Gives the precompiles geth's errors. A rejected input halts; for some inputs the library reverts. */
export const withGethErrors = (precompiles: ReadonlyMap<string, PrecompileFunc>): Map<string, PrecompileFunc> =>
  new Map([...precompiles].map(([address, precompile]) => [address, describing(precompile, DESCRIBE.get(address))]));

const describing = (precompile: PrecompileFunc, describe: Describe | undefined): PrecompileFunc => {
  if (describe === undefined) {
    return precompile;
  }
  const renamed = (input: PrecompileInput, result: Result): Result => {
    const error = result.exceptionError?.error;
    if (error === undefined) {
      return result;
    }
    // The text for out of gas is the same, except for the lengths of modexp.
    if (error === errorMessages.OUT_OF_GAS && describe !== describeModexp) {
      return result;
    }
    const text = describe(input, error);
    return text === undefined ? result : { ...result, exceptionError: new EVMError(text as LibraryError) };
  };
  return (input) => {
    const result = precompile(input);
    return result instanceof Promise ? result.then((settled) => renamed(input, settled)) : renamed(input, result);
  };
};
