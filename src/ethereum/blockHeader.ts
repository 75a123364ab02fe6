import { type Address, type Data, formatData, formatQuantity, type Hash, parseData, type Quantity } from "./hex.ts";
import { keccak256Hex } from "./keccak.ts";
import { bytesLength, encodeBytes, encodeList, encodeNumber, listLength } from "./rlp.ts";

/** keccak(rlp([])): there are no ommers after the Merge. */
export const EMPTY_OMMERS_HASH: Hash = "0x1dcc4de8dec75d7aab85b567b6ccd41ad312451b948a7413f0a142fd40d49347";
/** sha256 of nothing, EIP-7685: OP-stack blocks have no requests. */
export const EMPTY_REQUESTS_HASH: Hash = "0xe3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
const ZERO_NONCE: Data = "0x0000000000000000";

/** Names are those of the execution API. The field of a fork is undefined before that fork. */
export interface BlockHeader {
  readonly parentHash: Hash;
  readonly sha3Uncles?: Hash;
  readonly miner: Address;
  readonly stateRoot: Hash;
  readonly transactionsRoot: Hash;
  readonly receiptsRoot: Hash;
  readonly logsBloom: Uint8Array;
  readonly difficulty?: bigint;
  readonly number: bigint;
  readonly gasLimit: bigint;
  readonly gasUsed: bigint;
  readonly timestamp: bigint;
  readonly extraData: Data;
  readonly mixHash: Hash;
  readonly nonce?: Data;
  readonly baseFeePerGas?: bigint;
  readonly withdrawalsRoot?: Hash;
  readonly blobGasUsed?: bigint;
  readonly excessBlobGas?: bigint;
  readonly parentBeaconBlockRoot?: Hash;
  readonly requestsHash?: Hash;
  /** EIP-7928 */
  readonly blockAccessListHash?: Hash;
  /** EIP-7843 */
  readonly slotNumber?: bigint;
}

export const encodeHeader = (header: BlockHeader): Uint8Array => {
  const data = (value: Data) => encodeBytes(parseData(value));
  const fields = [
    data(header.parentHash),
    data(header.sha3Uncles ?? EMPTY_OMMERS_HASH),
    data(header.miner),
    data(header.stateRoot),
    data(header.transactionsRoot),
    data(header.receiptsRoot),
    encodeBytes(header.logsBloom),
    encodeNumber(header.difficulty ?? 0n),
    encodeNumber(header.number),
    encodeNumber(header.gasLimit),
    encodeNumber(header.gasUsed),
    encodeNumber(header.timestamp),
    data(header.extraData),
    data(header.mixHash),
    data(header.nonce ?? ZERO_NONCE),
  ];
  // The fields of a fork follow those of the previous fork. The first missing field ends the header.
  for (const field of Object.values(laterFields(header))) {
    if (field === undefined) {
      break;
    }
    fields.push(typeof field === "bigint" ? encodeNumber(field) : data(field));
  }
  return encodeList(fields);
};

/** The fields that forks since London have added, in the order of their encoding. */
const laterFields = (header: BlockHeader) => {
  const { baseFeePerGas, withdrawalsRoot, blobGasUsed, excessBlobGas, parentBeaconBlockRoot, requestsHash } = header;
  const { blockAccessListHash, slotNumber } = header;
  const ofOsaka = { baseFeePerGas, withdrawalsRoot, blobGasUsed, excessBlobGas, parentBeaconBlockRoot, requestsHash };
  return { ...ofOsaka, blockAccessListHash, slotNumber };
};

export const hashHeader = (header: BlockHeader): Hash => keccak256Hex(encodeHeader(header));

/** Formats the header's part of a block object. The caller passes `hash`, because a feed may have reported it. */
export const formatHeader = (header: BlockHeader, hash: Hash): Record<string, string> => {
  const formatted: Record<string, string> = {
    hash,
    parentHash: header.parentHash,
    sha3Uncles: header.sha3Uncles ?? EMPTY_OMMERS_HASH,
    miner: header.miner,
    stateRoot: header.stateRoot,
    transactionsRoot: header.transactionsRoot,
    receiptsRoot: header.receiptsRoot,
    logsBloom: formatData(header.logsBloom),
    difficulty: formatQuantity(header.difficulty ?? 0n),
    number: formatQuantity(header.number),
    gasLimit: formatQuantity(header.gasLimit),
    gasUsed: formatQuantity(header.gasUsed),
    timestamp: formatQuantity(header.timestamp),
    extraData: header.extraData,
    mixHash: header.mixHash,
    nonce: header.nonce ?? ZERO_NONCE,
  };
  for (const [name, value] of Object.entries(laterFields(header))) {
    if (value !== undefined) {
      formatted[name] = typeof value === "bigint" ? formatQuantity(value) : value;
    }
  }
  return formatted;
};

/**
 * Returns a block's `size`, the length of rlp([header, transactions, ommers, withdrawals]). There are no ommers.
 * The list of withdrawals is empty, and present if the header has their root. Typed transactions (EIP-2718) are encoded as strings.
 */
export const blockSize = (header: BlockHeader, rawTransactions: readonly Uint8Array[]): Quantity => {
  let payload = 0;
  for (const raw of rawTransactions) {
    payload += (raw[0] ?? 0) >= 0xc0 ? raw.length : bytesLength(raw);
  }
  const emptyLists = header.withdrawalsRoot === undefined ? 1 : 2;
  return formatQuantity(listLength(encodeHeader(header).length + listLength(payload) + emptyLists));
};
