import type { Address, Hash } from "../ethereum/hex.ts";
import { type Fields, isFields } from "../json/jsonBytes.ts";
import { CODES, invalidParams, RpcError } from "../jsonrpc/rpcError.ts";
import type { PrefetchHint } from "../state/fetch/prefetch.ts";
import { type CallRequest, parseCall } from "./callRequest.ts";
import {
  parseAddress,
  parseBytes,
  parseFields,
  parseFlag,
  parseHash,
  parseList,
  parseUint64,
  parseUint256,
  parseWord,
} from "./payloadFields.ts";

/** The error codes of eth_simulateV1. Sources: execution-apis, src/eth/execute.yaml; geth, internal/ethapi/errors.go. */
export const SIMULATE_CODES = {
  REVERTED: 3,
  VM_ERROR: -32015,
  NONCE_TOO_LOW: -38010,
  NONCE_TOO_HIGH: -38011,
  FEE_CAP_TOO_LOW: -38012,
  INTRINSIC_GAS: -38013,
  INSUFFICIENT_FUNDS: -38014,
  BLOCK_GAS_LIMIT: -38015,
  BLOCK_NUMBER: -38020,
  BLOCK_TIMESTAMP: -38021,
  SENDER_NOT_EOA: -38024,
  INIT_CODE_SIZE: -38025,
  CLIENT_LIMIT: -38026,
} as const;

export interface AccountOverride {
  readonly nonce?: bigint | undefined;
  readonly code?: Uint8Array | undefined;
  readonly balance?: bigint | undefined;
  /** Replaces all slots. */
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
  /** In order of their addresses. Overrides are applied in this order. */
  readonly states: readonly (readonly [Address, AccountOverride])[];
  readonly calls: readonly CallRequest[];
}

export interface Payload {
  readonly blocks: readonly BlockStateCalls[];
  readonly tracesTransfers: boolean;
  readonly validates: boolean;
  readonly returnsFullTransactions: boolean;
}

interface PayloadLimits {
  readonly maxBlocks: number;
  /** Calls in one block. */
  readonly maxCalls: number;
}

const MAX_CALLS_IN_ALL = 10_000;
const decoder = new TextDecoder();

/** Parses the first parameter of eth_simulateV1. `paramsText` is the JSON text of all parameters. Throws RpcError. */
export const parsePayload = (paramsText: Uint8Array, limits: PayloadLimits): Payload => {
  const params: unknown = JSON.parse(decoder.decode(paramsText));
  const fields = Array.isArray(params) ? parseFields(params[0], "payload") : undefined;
  if (fields === undefined) {
    throw invalidParams("missing value for required argument 0");
  }
  const blocks = parseList(fields.blockStateCalls, "blockStateCalls") ?? [];
  if (blocks.length === 0) {
    throw new RpcError(CODES.INVALID_PARAMS, "empty input");
  }
  if (blocks.length > limits.maxBlocks) {
    throw new RpcError(SIMULATE_CODES.CLIENT_LIMIT, "too many blocks");
  }
  checkCalls(blocks, limits);
  return {
    blocks: blocks.map((block, at) => parseBlock(block, `blockStateCalls[${at}]`)),
    tracesTransfers: parseFlag(fields.traceTransfers, "traceTransfers"),
    validates: parseFlag(fields.validation, "validation"),
    returnsFullTransactions: parseFlag(fields.returnFullTransactions, "returnFullTransactions"),
  };
};

/** Counts the calls before any of them is parsed, so that a million calls are rejected quickly. */
const checkCalls = (blocks: readonly unknown[], { maxCalls }: PayloadLimits): void => {
  let all = 0;
  for (const [at, block] of blocks.entries()) {
    const path = `blockStateCalls[${at}]`;
    const { length = 0 } = parseList(parseFields(block, path)?.calls, `${path}.calls`) ?? [];
    if (length > maxCalls) {
      throw new RpcError(SIMULATE_CODES.CLIENT_LIMIT, `too many calls in block: ${length} > ${maxCalls}`);
    }
    all += length;
  }
  if (all > MAX_CALLS_IN_ALL) {
    throw new RpcError(SIMULATE_CODES.CLIENT_LIMIT, `too many calls in request: ${all} > ${MAX_CALLS_IN_ALL}`);
  }
};

const parseBlock = (value: unknown, path: string): BlockStateCalls => {
  const fields = parseFields(value, path) ?? {};
  const calls = parseList(fields.calls, `${path}.calls`) ?? [];
  return {
    overrides: parseBlockOverrides(fields.blockOverrides, `${path}.blockOverrides`),
    states: parseStateOverrides(fields.stateOverrides, `${path}.stateOverrides`),
    calls: calls.map((call, at) => parseCall(call, `${path}.calls[${at}]`)),
  };
};

/** Other names that clients use for a field. */
const ALIASES = new Map([
  ["timestamp", "time"],
  ["coinbase", "feerecipient"],
  ["random", "prevrandao"],
  ["basefee", "basefeepergas"],
]);

export const parseBlockOverrides = (value: unknown, path: string): BlockOverrides => {
  // geth ignores the case of these names, and ignores unknown names.
  const named = Object.entries(parseFields(value, path) ?? {}).map(([name, entry]) => {
    const lower = name.toLowerCase();
    return [ALIASES.get(lower) ?? lower, entry] as const;
  });
  const fields: Fields = Object.fromEntries(named);
  const at = (name: string) => `${path}.${name}`;
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

const parseWithdrawal = (value: unknown, path: string): Withdrawal => {
  const fields = parseFields(value, path) ?? {};
  const address = parseAddress(fields.address, `${path}.address`);
  if (address === undefined) {
    throw invalidParams(`${path}.address is missing`);
  }
  return {
    address,
    index: parseUint64(fields.index, `${path}.index`) ?? 0n,
    validatorIndex: parseUint64(fields.validatorIndex, `${path}.validatorIndex`) ?? 0n,
    amount: parseUint64(fields.amount, `${path}.amount`) ?? 0n,
  };
};

export const parseStateOverrides = (value: unknown, path: string): [Address, AccountOverride][] => {
  const overrides = Object.entries(parseFields(value, path) ?? {}).map(([key, entry]): [Address, AccountOverride] => {
    const address = parseAddress(key, path);
    if (address === undefined) {
      throw invalidParams(`${path} must be an object of addresses`);
    }
    return [address, parseAccountOverride(entry, `${path}.${key}`)];
  });
  return overrides.sort(([one], [other]) => (one < other ? -1 : 1));
};

const parseAccountOverride = (value: unknown, path: string): AccountOverride => {
  const fields = parseFields(value, path) ?? {};
  return {
    nonce: parseUint64(fields.nonce, `${path}.nonce`),
    code: parseBytes(fields.code, `${path}.code`),
    balance: parseUint256(fields.balance, `${path}.balance`),
    state: parseSlots(fields.state, `${path}.state`),
    stateDiff: parseSlots(fields.stateDiff, `${path}.stateDiff`),
    movePrecompileTo: parseAddress(fields.movePrecompileToAddress, `${path}.movePrecompileToAddress`),
  };
};

const parseSlots = (value: unknown, path: string): ReadonlyMap<Hash, Hash> | undefined => {
  const fields = parseFields(value, path);
  if (fields === undefined) {
    return undefined;
  }
  return new Map(Object.entries(fields).map(([slot, word]) => [parseWord(slot, path), parseWord(word, path)]));
};

/** Returns the calls in the first block of a payload of eth_simulateV1. Nodes can trace them to report what they read. */
export const prefetchHintOfPayload = (params: readonly unknown[]): PrefetchHint | undefined => {
  const [payload] = params;
  const blocks = isFields(payload) ? payload.blockStateCalls : undefined;
  const [block]: unknown[] = Array.isArray(blocks) ? blocks : [];
  if (!isFields(block) || !Array.isArray(block.calls)) {
    return undefined;
  }
  return { calls: block.calls.filter(isFields), stateOverrides: block.stateOverrides ?? undefined };
};

/** Returns the call of an eth_call and its overrides. */
export const prefetchHintOfCall = ([call, , stateOverrides]: readonly unknown[]): PrefetchHint | undefined =>
  isFields(call) ? { calls: [call], stateOverrides: stateOverrides ?? undefined } : undefined;
