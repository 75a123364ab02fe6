import { type Address, type Hash, ZERO_ADDRESS } from "../ethereum/hex.ts";
import type { AccessListEntry, Authorization } from "../ethereum/transaction.ts";
import { NotExecutableError } from "../evm/executionErrors.ts";
import type { Fields } from "../json/jsonBytes.ts";
import { invalidParams } from "../jsonrpc/rpcError.ts";
import {
  parseAddress,
  parseBytes,
  parseFields,
  parseHash,
  parseList,
  parseUint64,
  parseUint256,
} from "./payloadFields.ts";

/** A call as the client wrote it. Fields that are `undefined` get their defaults when the call is executed. */
export interface CallRequest {
  readonly from: Address;
  /** `null` creates a contract. */
  readonly to: Address | null;
  readonly gas: bigint | undefined;
  readonly gasPrice: bigint | undefined;
  readonly maxFeePerGas: bigint | undefined;
  readonly maxPriorityFeePerGas: bigint | undefined;
  readonly maxFeePerBlobGas: bigint | undefined;
  readonly value: bigint;
  readonly nonce: bigint | undefined;
  readonly input: Uint8Array;
  readonly accessList: readonly AccessListEntry[] | undefined;
  readonly chainId: bigint | undefined;
  readonly blobVersionedHashes: readonly Hash[] | undefined;
  readonly authorizationList: readonly Authorization[] | undefined;
}

const NOTHING = new Uint8Array(0);
const LAST_KNOWN_TYPE = 4n;

/**
 * Parses a call object. `path` is its location in the params, for error texts.
 * Throws RpcError for invalid fields, and NotExecutableError for an unsupported transaction type.
 */
export const parseCall = (value: unknown, path: string): CallRequest => {
  const fields = parseFields(value, path) ?? {};
  const at = (name: string) => `${path}.${name}`;
  // `type` is only validated. The other fields decide the type of the transaction.
  const type = parseUint64(fields.type, at("type")) ?? 0n;
  if (type > LAST_KNOWN_TYPE) {
    throw new NotExecutableError(`unsupported transaction type ${type}`);
  }
  return {
    from: parseAddress(fields.from, at("from")) ?? ZERO_ADDRESS,
    to: parseAddress(fields.to, at("to")) ?? null,
    gas: parseUint64(fields.gas, at("gas")),
    gasPrice: parseUint256(fields.gasPrice, at("gasPrice")),
    maxFeePerGas: parseUint256(fields.maxFeePerGas, at("maxFeePerGas")),
    maxPriorityFeePerGas: parseUint256(fields.maxPriorityFeePerGas, at("maxPriorityFeePerGas")),
    maxFeePerBlobGas: parseUint256(fields.maxFeePerBlobGas, at("maxFeePerBlobGas")),
    value: parseUint256(fields.value, at("value")) ?? 0n,
    nonce: parseUint64(fields.nonce, at("nonce")),
    // `input` takes precedence over `data`, its older name.
    input: parseBytes(fields.input, at("input")) ?? parseBytes(fields.data, at("data")) ?? NOTHING,
    accessList: parseList(fields.accessList, at("accessList"))?.map((entry) => parseAccess(entry, at("accessList"))),
    chainId: parseUint256(fields.chainId, at("chainId")),
    blobVersionedHashes: parseHashes(fields.blobVersionedHashes, at("blobVersionedHashes")),
    authorizationList: parseList(fields.authorizationList, at("authorizationList"))?.map((entry) =>
      parseAuthorization(entry, at("authorizationList")),
    ),
  };
};

const parseHashes = (value: unknown, path: string): readonly Hash[] | undefined =>
  parseList(value, path)?.map((entry) => required(parseHash(entry, path), path));

const parseAccess = (value: unknown, path: string): AccessListEntry => {
  const fields = parseFields(value, path) ?? {};
  return {
    address: required(parseAddress(fields.address, `${path}.address`), `${path}.address`),
    storageKeys: parseHashes(fields.storageKeys, `${path}.storageKeys`) ?? [],
  };
};

const parseAuthorization = (value: unknown, path: string): Authorization => {
  const fields: Fields = parseFields(value, path) ?? {};
  const number = (name: string) => parseUint256(fields[name], `${path}.${name}`) ?? 0n;
  return {
    chainId: number("chainId"),
    address: required(parseAddress(fields.address, `${path}.address`), `${path}.address`),
    nonce: parseUint64(fields.nonce, `${path}.nonce`) ?? 0n,
    yParity: fields.yParity === undefined ? number("v") : number("yParity"),
    r: number("r"),
    s: number("s"),
  };
};

const required = <T>(value: T | undefined, path: string): T => {
  if (value === undefined) {
    throw invalidParams(`${path} is missing`);
  }
  return value;
};
