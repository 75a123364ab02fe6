import type { PendingEnvironment } from "../core/view.ts";
import {
  type Address,
  type Data,
  formatWord,
  type Hash,
  isAddress,
  isData,
  isHash,
  isQuantity,
  ZERO_HASH,
} from "../ethereum/hex.ts";
import type { LogEntry } from "../ethereum/receipt.ts";
import { type Fields, isFields } from "../json/jsonBytes.ts";
import type {
  Commitments,
  FeedMessage,
  FeedReceipt,
  ListedAccount,
  MessagePlace,
  ParsedMessage,
} from "./feedMessage.ts";

const parseBase = (value: unknown): PendingEnvironment => {
  const base = read.fields(value);
  return {
    parentHash: read.hash(base.parent_hash),
    parentBeaconBlockRoot: read.hash(base.parent_beacon_block_root),
    feeRecipient: read.address(base.fee_recipient),
    prevRandao: read.hash(base.prev_randao),
    number: read.quantity(base.block_number),
    gasLimit: read.quantity(base.gas_limit),
    timestamp: read.quantity(base.timestamp),
    extraData: read.data(base.extra_data),
    baseFeePerGas: read.quantity(base.base_fee_per_gas),
  };
};

const BLOOM_LENGTH = 2 + 2 * 256;

/** Reads what the block commits to with this message: all fields are those of the block so far. */
const parseCommitments = (diff: Fields): Commitments => {
  const logsBloom = read.data(diff.logs_bloom);
  if (logsBloom.length !== BLOOM_LENGTH) {
    throw new Malformed();
  }
  return {
    stateRoot: read.hash(diff.state_root),
    receiptsRoot: read.hash(diff.receipts_root),
    logsBloom,
    gasUsed: read.quantity(diff.gas_used),
    blockHash: read.hash(diff.block_hash),
    // Blocks before Isthmus do not have it.
    withdrawalsRoot: read.optional(diff.withdrawals_root, read.hash) ?? ZERO_HASH,
    blobGasUsed: read.optional(diff.blob_gas_used, read.quantity),
  };
};

const parseDiff = (value: unknown): Pick<FeedMessage, "transactions" | "closingTransaction" | "commitments"> => {
  const diff = read.fields(value);
  return {
    commitments: parseCommitments(diff),
    transactions: read.list(diff.transactions).map(read.data),
    closingTransaction: read.optional(diff.post_exec_tx, read.data),
  };
};

/** Parses `0x1` or `true`. */
const parseStatus = (value: unknown): boolean => {
  if (typeof value === "boolean") {
    return value;
  }
  const status = read.quantity(value);
  if (status > 1n) {
    throw new Malformed();
  }
  return status === 1n;
};

const parseLog = (value: unknown): LogEntry => {
  const log = read.fields(value);
  const topics = read.list(log.topics).map(read.hash);
  if (topics.length > 4) {
    throw new Malformed();
  }
  return { address: read.address(log.address), topics, data: read.data(log.data) };
};

const RECEIPT_TAG = /^[A-Z]/;

/** Unwraps a receipt with an outer key (`{"Eip1559": {...}}`). Newer versions of op-alloy send `{"type": "0x2", ...}`. */
const untagged = (receipt: Fields): Fields => {
  const [tag, ...others] = Object.keys(receipt);
  return tag !== undefined && others.length === 0 && RECEIPT_TAG.test(tag) ? read.fields(receipt[tag]) : receipt;
};

const parseReceipt = (value: unknown): FeedReceipt => {
  const receipt = untagged(read.fields(value));
  return {
    status: parseStatus(receipt.status),
    cumulativeGasUsed: read.quantity(receipt.cumulativeGasUsed),
    logs: read.list(receipt.logs).map(parseLog),
    depositNonce: read.optional(receipt.depositNonce, read.quantity),
  };
};

/** Parses the receipts of the metadata. An unknown format returns `undefined`: execution then computes the receipts. */
const parseReceipts = (value: unknown): ReadonlyMap<Hash, FeedReceipt> | undefined => {
  if (!isFields(value)) {
    return undefined;
  }
  try {
    return new Map(Object.entries(value).map(([hash, receipt]) => [read.hash(hash), parseReceipt(receipt)]));
  } catch (error) {
    if (error instanceof Malformed) {
      return undefined;
    }
    throw error;
  }
};

/** `<block>-<index>`. `0-0` means that the field is absent. */
const PREVIOUS = /^(\d{1,20})-(\d{1,10})$/;
const parsePrevious = (value: unknown): MessagePlace | undefined => {
  const [, number, index] = (typeof value === "string" && value !== "0-0" && PREVIOUS.exec(value)) || [];
  return number === undefined ? undefined : { number: BigInt(number), index: Number(index) };
};

const MAX_INDEX = 1_000;
const isIndex = (value: unknown): value is number =>
  typeof value === "number" && Number.isInteger(value) && value >= 0 && value <= MAX_INDEX;

const isBlockNumber = (value: unknown): value is number =>
  typeof value === "number" && Number.isSafeInteger(value) && value >= 0;

const isPayloadId = (value: unknown): value is Data => isData(value) && value.length === 18;

const parseFields = (fields: Fields, bytes: number): FeedMessage => {
  const { index, payload_id } = fields;
  if (!isPayloadId(payload_id) || !isIndex(index)) {
    throw new Malformed();
  }
  const metadata = isFields(fields.metadata) ? fields.metadata : {};
  // `base` in a later message is ignored.
  const environment = index === 0 ? parseBase(fields.base) : undefined;
  return {
    blockKey: read.data(payload_id),
    index,
    environment,
    number: environment?.number ?? (isBlockNumber(metadata.block_number) ? BigInt(metadata.block_number) : undefined),
    ...parseDiff(fields.diff),
    receipts: parseReceipts(metadata.receipts),
    accessList: parseFlashblockAccessList(metadata, fields.diff),
    previous: parsePrevious(metadata.prev_flashblock_id),
    bytes,
  };
};

/** Unwraps the envelope of X Layer: an object that contains the message as one of its fields. */
const unwrap = (value: unknown): unknown =>
  isFields(value) && !("payload_id" in value)
    ? (Object.values(value).find((inner) => isFields(inner) && "payload_id" in inner) ?? value)
    : value;

/**
 * Whether this is X Layer's `OpFlashblockPayloadEnd`: a payload id alone, or in an envelope of that name
 * (okx/xlayer-reth, crates/builder/src/broadcast/payload.rs).
 */
const isPayloadEnd = (value: unknown, unwrapped: Fields): boolean =>
  (isFields(value) && "OpFlashblockPayloadEnd" in value) ||
  (isPayloadId(unwrapped.payload_id) && Object.keys(unwrapped).length === 1);

/** Parses a message of Flashblocks or Subblocks, of any version (docs/reference/flashblocks.md, Message, Metadata, Subblocks). Never throws. */
export const parseFlashblock = (text: string): ParsedMessage => {
  try {
    const value: unknown = JSON.parse(text);
    const unwrapped = read.fields(unwrap(value));
    return isPayloadEnd(value, unwrapped)
      ? { refused: "payloadEnd" }
      : { message: parseFields(unwrapped, text.length) };
  } catch (error) {
    if (error instanceof Malformed || error instanceof SyntaxError) {
      return { refused: "malformed" };
    }
    throw error;
  }
};

const MAX_ACCOUNTS = 20_000;

/**
 * Parses a flashblock access list: EIP-7928's account changes, in the metadata (Base, X Layer) or in `diff` (World Chain).
 * The list is a hint for prefetching. An unknown format returns an empty list.
 */
const parseFlashblockAccessList = (metadata: Fields, diff: unknown): readonly ListedAccount[] => {
  const inDiff = isFields(diff) ? diff.access_list_data : undefined;
  const changes = [metadata.access_list, metadata.flashblock_access_list, inDiff].map(findChanges).find(Boolean);
  if (!changes || changes.length > MAX_ACCOUNTS) {
    return [];
  }
  try {
    return changes.map(parseAccount);
  } catch (error) {
    if (error instanceof Malformed) {
      return [];
    }
    throw error;
  }
};

/** A message may be nested deeper than the stack. */
const findChanges = (value: unknown): readonly unknown[] | undefined => {
  let inner = value;
  while (isFields(inner)) {
    inner = inner.account_changes ?? inner.accountChanges ?? inner.access_list;
  }
  return Array.isArray(inner) ? inner : undefined;
};

const parseAccount = (value: unknown): ListedAccount => {
  const account = read.fields(value);
  const changes = read.list(account.storageChanges ?? account.storage_changes ?? []).map(read.fields);
  const reads = read.list(account.storageReads ?? account.storage_reads ?? []);
  const slots = [...changes.map(({ key, slot }) => key ?? slot), ...reads].map(read.slot);
  return { address: read.address(account.address), slots };
};

/** A field of a message does not have the type of the wire format. */
class Malformed extends Error {}

/** `0x` and the 64 digits of a 256-bit value. */
const MAX_QUANTITY_LENGTH = 66;

/** Reads fields of untrusted JSON. Hex values are returned in lower case. Throws Malformed. */
const read = {
  hash: (value: unknown): Hash => {
    if (!isHash(value)) {
      throw new Malformed();
    }
    return `0x${value.slice(2).toLowerCase()}`;
  },
  data: (value: unknown): Data => {
    if (!isData(value)) {
      throw new Malformed();
    }
    return `0x${value.slice(2).toLowerCase()}`;
  },
  address: (value: unknown): Address => {
    if (!isAddress(value)) {
      throw new Malformed();
    }
    return `0x${value.slice(2).toLowerCase()}`;
  },
  quantity: (value: unknown): bigint => {
    if (!isQuantity(value) || value.length > MAX_QUANTITY_LENGTH) {
      throw new Malformed();
    }
    return BigInt(value);
  },
  /** Reads a storage slot. Some senders omit leading zeros. */
  slot: (value: unknown): Hash => formatWord(read.quantity(value)),
  list: (value: unknown): readonly unknown[] => {
    if (!Array.isArray(value)) {
      throw new Malformed();
    }
    return value;
  },
  fields: (value: unknown): Fields => {
    if (!isFields(value)) {
      throw new Malformed();
    }
    return value;
  },
  /** Returns `undefined` for a field that is absent or `null`. */
  optional: <T>(value: unknown, reader: (value: unknown) => T): T | undefined =>
    value === undefined || value === null ? undefined : reader(value),
};
