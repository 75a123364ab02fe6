import { type Address, ZERO_ADDRESS } from "../../ethereum/hex.ts";
import type { Authorization, DepositTransaction } from "../../ethereum/transaction.ts";
import type { Cost } from "../checks/checkTransaction.ts";
import type { ActiveRules, TransactionOptions } from "../engine.ts";
import { recoverAuthority } from "../senders/recoverAddress.ts";
import type { TransactionMessage } from "../transactionMessage.ts";
import type { FastInstance } from "./fastInstance.ts";
import { type ModuleMemory, moduleNumber } from "./moduleMemory.ts";

const NOTHING = new Uint8Array(0);
const ADDRESS_BYTES = 20;
const WORD_BYTES = 32;
const HEAD_BYTES = 148;
const COUNT_BYTES = 4;
const AUTHORIZATION_BYTES = WORD_BYTES + ADDRESS_BYTES + 8 + COUNT_BYTES + ADDRESS_BYTES;
const MOVED_BYTES = ADDRESS_BYTES + COUNT_BYTES + ADDRESS_BYTES;

const CREATES = 1;
const TRACES_TRANSFERS = 2;
const TRACES_ACCESS = 4;
const HAS_RAW = 8;
const IS_FREE = 16;
const IS_DEPOSIT = 32;
const IS_SYSTEM = 64;
const HAS_DEADLINE = 128;
const TRACES_READS = 256;
const CAPS_EXECUTION = 512;

/** A transaction as the module takes it. */
export interface FastRequest {
  readonly flags: number;
  readonly from: Address;
  readonly to: Address | null;
  readonly gas: bigint;
  readonly gasPrice: bigint;
  readonly value: bigint;
  readonly input: Uint8Array;
  /** The amount that the sender pays before the run, without the fees of the OP stack. */
  readonly charge: bigint;
  readonly mint: bigint;
  readonly raw: Uint8Array;
  readonly accessList: TransactionMessage["accessList"];
  readonly blobVersionedHashes: TransactionMessage["blobVersionedHashes"];
  /** Each with its authority. Undefined: the authorization is skipped. */
  readonly authorizations: readonly (readonly [Authorization, Address | undefined])[];
  readonly moved: readonly (readonly [Address, Address | null])[];
}

const flagIf = (condition: boolean | undefined, flag: number): number => (condition ? flag : 0);

export const requestOf = (
  message: TransactionMessage,
  cost: Cost,
  rules: Pick<ActiveRules, "rules" | "isActive">,
  options: TransactionOptions,
): FastRequest => ({
  flags:
    flagIf(message.to === null, CREATES) |
    // Since EIP-7708 transfers are logs.
    flagIf(options.tracesTransfers && !rules.isActive(7708), TRACES_TRANSFERS) |
    flagIf(rules.isActive(8037) && options.checks?.liftsExecutionCap !== true, CAPS_EXECUTION) |
    flagIf(options.tracesAccess, TRACES_ACCESS) |
    flagIf(options.raw !== undefined, HAS_RAW) |
    flagIf(cost.isFree, IS_FREE) |
    HAS_DEADLINE,
  from: message.from,
  to: message.to,
  gas: message.gas,
  gasPrice: cost.gasPrice,
  value: message.value,
  input: message.input,
  charge: message.gas * cost.gasPrice + cost.blobFee,
  mint: 0n,
  raw: options.raw ?? NOTHING,
  accessList: message.accessList,
  blobVersionedHashes: message.blobVersionedHashes,
  authorizations: message.authorizationList.map((each) => [each, recoverAuthority(each, rules.rules.chainId)]),
  moved: [...(options.movedPrecompiles ?? [])],
});

const PLAIN = {
  gasPrice: 0n,
  charge: 0n,
  mint: 0n,
  raw: NOTHING,
  accessList: [],
  blobVersionedHashes: [],
  authorizations: [],
  moved: [],
} as const;

export const depositRequest = ({ from, to, gas, value, input, mint, isSystemTx }: DepositTransaction): FastRequest => ({
  ...PLAIN,
  flags: IS_DEPOSIT | IS_FREE | HAS_DEADLINE | flagIf(to === null, CREATES) | flagIf(isSystemTx, IS_SYSTEM),
  from,
  to,
  gas,
  value,
  input,
  mint,
});

export const systemRequest = (from: Address, to: Address, gas: bigint, input: Uint8Array): FastRequest => ({
  ...PLAIN,
  flags: IS_FREE | HAS_DEADLINE,
  from,
  to,
  gas,
  value: 0n,
  input,
});

/** The module then returns what the run reads. */
export const tracingReads = (request: FastRequest): FastRequest => ({
  ...request,
  flags: request.flags | TRACES_READS,
});

/** Writes a request into the module's input. Returns its length. */
export const writeRequest = (instance: FastInstance, request: FastRequest): number => {
  const length = lengthOf(request);
  const start = instance.exports.reserve(length);
  const { memory } = instance;
  memory.refresh();
  memory.setUint32(start, request.flags);
  memory.setAddress(start + 4, request.from);
  memory.setAddress(start + 24, request.to ?? ZERO_ADDRESS);
  memory.setUint64(start + 44, moduleNumber(request.gas, 64, "gas limit"));
  memory.setUint128(start + 52, moduleNumber(request.gasPrice, 128, "gas price"));
  memory.setWord(start + 68, request.value);
  memory.setWord(start + 100, request.charge);
  memory.setUint128(start + 132, moduleNumber(request.mint, 128, "mint"));
  let at = writeBytes(memory, start + HEAD_BYTES, request.input);
  at = writeBytes(memory, at, request.raw);
  at = writeAccessList(memory, at, request.accessList);
  at = writeHashes(memory, at, request.blobVersionedHashes);
  at = writeAuthorizations(memory, at, request.authorizations);
  writeMoved(memory, at, request.moved);
  return length;
};

const lengthOf = ({ input, raw, accessList, blobVersionedHashes, authorizations, moved }: FastRequest): number => {
  let length = HEAD_BYTES + 6 * COUNT_BYTES + input.length + raw.length;
  for (const { storageKeys } of accessList) {
    length += ADDRESS_BYTES + COUNT_BYTES + storageKeys.length * WORD_BYTES;
  }
  return (
    length +
    blobVersionedHashes.length * WORD_BYTES +
    authorizations.length * AUTHORIZATION_BYTES +
    moved.length * MOVED_BYTES
  );
};

const writeBytes = (memory: ModuleMemory, at: number, bytes: Uint8Array): number => {
  memory.setUint32(at, bytes.length);
  memory.setBytes(at + COUNT_BYTES, bytes);
  return at + COUNT_BYTES + bytes.length;
};

const writeHashes = (
  memory: ModuleMemory,
  start: number,
  hashes: TransactionMessage["blobVersionedHashes"],
): number => {
  memory.setUint32(start, hashes.length);
  let at = start + COUNT_BYTES;
  for (const hash of hashes) {
    memory.setHash(at, hash);
    at += WORD_BYTES;
  }
  return at;
};

const writeAccessList = (memory: ModuleMemory, start: number, list: FastRequest["accessList"]): number => {
  memory.setUint32(start, list.length);
  let at = start + COUNT_BYTES;
  for (const { address, storageKeys } of list) {
    memory.setAddress(at, address);
    at = writeHashes(memory, at + ADDRESS_BYTES, storageKeys);
  }
  return at;
};

const writeAuthorizations = (
  memory: ModuleMemory,
  start: number,
  authorizations: FastRequest["authorizations"],
): number => {
  memory.setUint32(start, authorizations.length);
  let at = start + COUNT_BYTES;
  for (const [authorization, authority] of authorizations) {
    memory.setWord(at, authorization.chainId);
    memory.setAddress(at + 32, authorization.address);
    memory.setUint64(at + 52, authorization.nonce);
    memory.setUint32(at + 60, authority === undefined ? 0 : 1);
    memory.setAddress(at + 64, authority ?? ZERO_ADDRESS);
    at += AUTHORIZATION_BYTES;
  }
  return at;
};

const writeMoved = (memory: ModuleMemory, start: number, moved: FastRequest["moved"]): void => {
  memory.setUint32(start, moved.length);
  let at = start + COUNT_BYTES;
  for (const [to, from] of moved) {
    memory.setAddress(at, to);
    memory.setUint32(at + ADDRESS_BYTES, from === null ? 1 : 0);
    memory.setAddress(at + ADDRESS_BYTES + COUNT_BYTES, from ?? ZERO_ADDRESS);
    at += MOVED_BYTES;
  }
};
