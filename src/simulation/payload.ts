import type { Address, Hash } from "../ethereum/hex.ts";
import { CODES, invalidParams, RpcError } from "../jsonrpc/rpcError.ts";
import { type CallRequest, parseCall } from "./callRequest.ts";
import { SIMULATE_CODES } from "./codes.ts";
import {
  type Fields,
  parseAddress,
  parseBytes,
  parseFields,
  parseFlag,
  parseHash,
  parseList,
  parseUint64,
  parseUint256,
  parseWord,
} from "./fields.ts";

export interface AccountOverride {
  readonly nonce?: bigint | undefined;
  readonly code?: Uint8Array | undefined;
  readonly balance?: bigint | undefined;
  /** Replaces the whole storage. */
  readonly state?: ReadonlyMap<Hash, Hash> | undefined;
  readonly stateDiff?: ReadonlyMap<Hash, Hash> | undefined;
  readonly movePrecompileTo?: Address | undefined;
}

export interface Withdrawal {
  readonly index: bigint;
  readonly validatorIndex: bigint;
  readonly address: Address;
  /** gwei */
  readonly amount: bigint;
}

export interface BlockOverrides {
  readonly number?: bigint | undefined;
  readonly time?: bigint | undefined;
  readonly gasLimit?: bigint | undefined;
  readonly feeRecipient?: Address | undefined;
  readonly prevRandao?: Hash | undefined;
  readonly baseFeePerGas?: bigint | undefined;
  readonly blobBaseFee?: bigint | undefined;
  readonly withdrawals?: readonly Withdrawal[] | undefined;
  readonly beaconRoot?: Hash | undefined;
}

export interface BlockStateCalls {
  readonly overrides: BlockOverrides;
  /** In order of their addresses: the order in which they are applied. */
  readonly states: readonly (readonly [Address, AccountOverride])[];
  readonly calls: readonly CallRequest[];
}

export interface Payload {
  readonly blocks: readonly BlockStateCalls[];
  readonly tracesTransfers: boolean;
  readonly validates: boolean;
  readonly returnsFullTransactions: boolean;
}

export interface PayloadLimits {
  readonly maxBlocks: number;
  /** Calls of one block. */
  readonly maxCalls: number;
}

const MAX_CALLS_IN_ALL = 10_000;
const decoder = new TextDecoder();

/** The first parameter of eth_simulateV1, from the text of all of them. */
export const parsePayload = (paramsText: Uint8Array, limits: PayloadLimits): Payload => {
  const params: unknown = JSON.parse(decoder.decode(paramsText));
  const fields = Array.isArray(params) ? parseFields(params[0], "payload") : undefined;
  if (fields === undefined) throw invalidParams("missing value for required argument 0");
  const blocks = parseList(fields.blockStateCalls, "blockStateCalls") ?? [];
  if (blocks.length === 0) throw new RpcError(CODES.INVALID_PARAMS, "empty input");
  if (blocks.length > limits.maxBlocks) throw new RpcError(SIMULATE_CODES.CLIENT_LIMIT, "too many blocks");
  checkCalls(blocks, limits);
  return {
    blocks: blocks.map((block, at) => parseBlock(block, `blockStateCalls[${at}]`)),
    tracesTransfers: parseFlag(fields.traceTransfers, "traceTransfers"),
    validates: parseFlag(fields.validation, "validation"),
    returnsFullTransactions: parseFlag(fields.returnFullTransactions, "returnFullTransactions"),
  };
};

/** Counted before any is read: a million calls are a lot of work to refuse. */
const checkCalls = (blocks: readonly unknown[], { maxCalls }: PayloadLimits): void => {
  let all = 0;
  for (const [at, block] of blocks.entries()) {
    const place = `blockStateCalls[${at}]`;
    const { length = 0 } = parseList(parseFields(block, place)?.calls, `${place}.calls`) ?? [];
    if (length > maxCalls) {
      throw new RpcError(SIMULATE_CODES.CLIENT_LIMIT, `too many calls in block: ${length} > ${maxCalls}`);
    }
    all += length;
  }
  if (all > MAX_CALLS_IN_ALL) {
    throw new RpcError(SIMULATE_CODES.CLIENT_LIMIT, `too many calls in request: ${all} > ${MAX_CALLS_IN_ALL}`);
  }
};

const parseBlock = (value: unknown, place: string): BlockStateCalls => {
  const fields = parseFields(value, place) ?? {};
  const calls = parseList(fields.calls, `${place}.calls`) ?? [];
  return {
    overrides: parseBlockOverrides(fields.blockOverrides, `${place}.blockOverrides`),
    states: parseStateOverrides(fields.stateOverrides, `${place}.stateOverrides`),
    calls: calls.map((call, at) => parseCall(call, `${place}.calls[${at}]`)),
  };
};

/** Other names under which clients know a field. */
const ALIASES = new Map([
  ["timestamp", "time"],
  ["coinbase", "feerecipient"],
  ["random", "prevrandao"],
  ["basefee", "basefeepergas"],
]);

export const parseBlockOverrides = (value: unknown, place: string): BlockOverrides => {
  // geth matches these names without regard to case and passes over those that it does not know.
  const named = Object.entries(parseFields(value, place) ?? {}).map(([name, entry]) => {
    const lower = name.toLowerCase();
    return [ALIASES.get(lower) ?? lower, entry] as const;
  });
  const fields: Fields = Object.fromEntries(named);
  const at = (name: string) => `${place}.${name}`;
  return {
    number: parseUint256(fields.number, at("number")),
    time: parseUint64(fields.time, at("time")),
    gasLimit: parseUint64(fields.gaslimit, at("gasLimit")),
    feeRecipient: parseAddress(fields.feerecipient, at("feeRecipient")),
    prevRandao: parseHash(fields.prevrandao, at("prevRandao")),
    baseFeePerGas: parseUint256(fields.basefeepergas, at("baseFeePerGas")),
    blobBaseFee: parseUint256(fields.blobbasefee, at("blobBaseFee")),
    withdrawals: parseList(fields.withdrawals, at("withdrawals"))?.map((entry, index) =>
      parseWithdrawal(entry, `${at("withdrawals")}[${index}]`),
    ),
    beaconRoot: parseHash(fields.beaconroot, at("beaconRoot")),
  };
};

const parseWithdrawal = (value: unknown, place: string): Withdrawal => {
  const fields = parseFields(value, place) ?? {};
  const address = parseAddress(fields.address, `${place}.address`);
  if (address === undefined) throw invalidParams(`${place}.address is missing`);
  return {
    address,
    index: parseUint64(fields.index, `${place}.index`) ?? 0n,
    validatorIndex: parseUint64(fields.validatorIndex, `${place}.validatorIndex`) ?? 0n,
    amount: parseUint64(fields.amount, `${place}.amount`) ?? 0n,
  };
};

export const parseStateOverrides = (value: unknown, place: string): [Address, AccountOverride][] => {
  const overrides = Object.entries(parseFields(value, place) ?? {}).map(([key, entry]): [Address, AccountOverride] => {
    const address = parseAddress(key, place);
    if (address === undefined) throw invalidParams(`${place} must be an object of addresses`);
    return [address, parseAccountOverride(entry, `${place}.${key}`)];
  });
  return overrides.sort(([one], [other]) => (one < other ? -1 : 1));
};

const parseAccountOverride = (value: unknown, place: string): AccountOverride => {
  const fields = parseFields(value, place) ?? {};
  return {
    nonce: parseUint64(fields.nonce, `${place}.nonce`),
    code: parseBytes(fields.code, `${place}.code`),
    balance: parseUint256(fields.balance, `${place}.balance`),
    state: parseSlots(fields.state, `${place}.state`),
    stateDiff: parseSlots(fields.stateDiff, `${place}.stateDiff`),
    movePrecompileTo: parseAddress(fields.movePrecompileToAddress, `${place}.movePrecompileToAddress`),
  };
};

const parseSlots = (value: unknown, place: string): ReadonlyMap<Hash, Hash> | undefined => {
  const fields = parseFields(value, place);
  if (fields === undefined) return undefined;
  return new Map(Object.entries(fields).map(([slot, word]) => [parseWord(slot, place), parseWord(word, place)]));
};
