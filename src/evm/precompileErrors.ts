import { EVMError, type PrecompileFunc, type PrecompileInput } from "@ethereumjs/evm";
import type { Address } from "../ethereum/hex.ts";
import { describeBlsFault } from "./blsFault.ts";
import {
  BLAKE2F,
  BLOB_HASH_MISMATCH,
  BLOB_PROOF,
  BLS_INPUTS,
  BN254_POINT_BYTES,
  describeBlake2f,
  describeBn254,
  describeModexp,
  INPUT_LENGTH,
  MODEXP,
  PAIRING_SIZE,
  POINT_EVALUATION,
} from "./precompileFault.ts";

const { errorMessages } = EVMError;
type Result = Awaited<ReturnType<PrecompileFunc>>;
type LibraryError = EVMError["error"];

/** Returns geth's error text for an input that a precompile rejects, or `undefined` for the library's text. */
type Describe = (input: PrecompileInput, error: LibraryError) => string | undefined;

const bn254 =
  (pointBytes: number | undefined): Describe =>
  ({ data }, error) =>
    error === errorMessages.INVALID_INPUT_LENGTH ? PAIRING_SIZE : describeBn254(data, pointBytes);

const kzg: Describe = (_, error) => {
  if (error === errorMessages.INVALID_INPUT_LENGTH) {
    return INPUT_LENGTH;
  }
  return error === errorMessages.INVALID_COMMITMENT ? BLOB_HASH_MISMATCH : BLOB_PROOF;
};

/** The library returns "out of gas" for lengths above the limit of EIP-7823. */
const modexp: Describe = ({ data, common, gasLimit }, error) =>
  error === errorMessages.OUT_OF_GAS && common.isActivatedEIP(7823) ? describeModexp(data, gasLimit) : undefined;

const bls =
  (shape: Parameters<typeof describeBlsFault>[1]): Describe =>
  ({ data }, error) =>
    error === errorMessages.BLS_12_381_INVALID_INPUT_LENGTH || error === errorMessages.BLS_12_381_INPUT_EMPTY
      ? INPUT_LENGTH
      : describeBlsFault(data, shape);

const DESCRIBE = new Map<Address, Describe>([
  [MODEXP, modexp],
  [BLAKE2F, ({ data }) => describeBlake2f(data)],
  [POINT_EVALUATION, kzg],
  ...[...BN254_POINT_BYTES].map(([address, pointBytes]) => [address, bn254(pointBytes)] as const),
  ...[...BLS_INPUTS].map(([address, shape]) => [address, bls(shape)] as const),
]);

/** Gives the precompiles geth's errors. A rejected input halts; for some inputs the library reverts. */
export const withGethErrors = (precompiles: ReadonlyMap<string, PrecompileFunc>): Map<string, PrecompileFunc> =>
  new Map(
    [...precompiles].map(([address, precompile]) => [address, describing(precompile, DESCRIBE.get(`0x${address}`))]),
  );

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
    if (error === errorMessages.OUT_OF_GAS && describe !== modexp) {
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
