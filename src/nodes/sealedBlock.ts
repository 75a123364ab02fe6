import type { HeaderFields, RingBlock } from "../core/heads.ts";
import { isData, isHash, isQuantity, parseData, type Quantity } from "../ethereum/hex.ts";
import { asText } from "../json/jsonBytes.ts";

/** A sealed block for the block ring, which stores `header` for its newest blocks only. */
export interface SealedBlock {
  readonly block: RingBlock;
  readonly header: HeaderFields | undefined;
}

const BLOOM_HEX_LENGTH = 2 + 2 * 256;

/** Larger numbers are rejected: the ring uses doubles, and no chain has such a block. */
const MAX_NUMBER = BigInt(Number.MAX_SAFE_INTEGER);

const isCountable = (value: Quantity): boolean => BigInt(value) <= MAX_NUMBER;

/**
 * Parses a node's block or header. Returns undefined for `null`, for a pending block without a hash, and for malformed fields.
 */
export const parseSealedBlock = (value: unknown): SealedBlock | undefined => {
  if (typeof value !== "object" || value === null) {
    return undefined;
  }
  const { transactions, uncles, withdrawals, ...header }: Record<string, unknown> = { ...value };
  const { number, hash, parentHash, timestamp, logsBloom } = header;
  if (
    !(isQuantity(number) && isHash(hash) && isHash(parentHash) && isQuantity(timestamp)) ||
    !(isData(logsBloom) && logsBloom.length === BLOOM_HEX_LENGTH) ||
    !(isCountable(number) && isCountable(timestamp))
  ) {
    return undefined;
  }
  return {
    header,
    block: {
      number: BigInt(number),
      hash,
      parentHash,
      timestamp: BigInt(timestamp),
      logsBloom: parseData(logsBloom),
    },
  };
};

/** Parses the UTF-8 JSON text of a block, as `parseSealedBlock` does. Returns undefined if it is not JSON. */
export const readSealedBlock = (body: Uint8Array): SealedBlock | undefined => {
  try {
    return parseSealedBlock(JSON.parse(asText(body)));
  } catch {
    return undefined;
  }
};
