import { type Address, type Hash, ZERO_ADDRESS } from "../ethereum/hex.ts";
import type { AccessListEntry, Authorization } from "../ethereum/transaction.ts";
import { NotExecutableError } from "../evm/notExecutableError.ts";
import { invalidParams } from "../jsonrpc/rpcError.ts";
import {
  type Fields,
  parseAddress,
  parseBytes,
  parseFields,
  parseHash,
  parseList,
  parseUint64,
  parseUint256,
} from "./fields.ts";

/** A call as the caller wants it; what is undefined gets a default when its turn comes. */
export interface CallRequest {
  readonly from: Address;
  /** null creates a contract. */
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

export const parseCall = (value: unknown, place: string): CallRequest => {
  const fields = parseFields(value, place) ?? {};
  const at = (name: string) => `${place}.${name}`;
  // Which of the known types it is follows from its other fields.
  const type = parseUint64(fields.type, at("type")) ?? 0n;
  if (type > LAST_KNOWN_TYPE) throw new NotExecutableError(`transaction type ${type} is not known`);
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
    // `input` wins over the older name.
    input: parseBytes(fields.input, at("input")) ?? parseBytes(fields.data, at("data")) ?? NOTHING,
    accessList: parseList(fields.accessList, at("accessList"))?.map((entry) => parseAccess(entry, at("accessList"))),
    chainId: parseUint256(fields.chainId, at("chainId")),
    blobVersionedHashes: parseHashes(fields.blobVersionedHashes, at("blobVersionedHashes")),
    authorizationList: parseList(fields.authorizationList, at("authorizationList"))?.map((entry) =>
      parseAuthorization(entry, at("authorizationList")),
    ),
  };
};

const parseHashes = (value: unknown, place: string): readonly Hash[] | undefined =>
  parseList(value, place)?.map((entry) => required(parseHash(entry, place), place));

const parseAccess = (value: unknown, place: string): AccessListEntry => {
  const fields = parseFields(value, place) ?? {};
  return {
    address: required(parseAddress(fields.address, `${place}.address`), `${place}.address`),
    storageKeys: parseHashes(fields.storageKeys, `${place}.storageKeys`) ?? [],
  };
};

const parseAuthorization = (value: unknown, place: string): Authorization => {
  const fields: Fields = parseFields(value, place) ?? {};
  const number = (name: string) => parseUint256(fields[name], `${place}.${name}`) ?? 0n;
  return {
    chainId: number("chainId"),
    address: required(parseAddress(fields.address, `${place}.address`), `${place}.address`),
    nonce: parseUint64(fields.nonce, `${place}.nonce`) ?? 0n,
    yParity: fields.yParity === undefined ? number("v") : number("yParity"),
    r: number("r"),
    s: number("s"),
  };
};

const required = <T>(value: T | undefined, place: string): T => {
  if (value === undefined) throw invalidParams(`${place} is missing`);
  return value;
};
