import type { HeaderFields, RingBlock } from "../core/heads.ts";
import { isData, isHash, isQuantity, parseData, type Quantity } from "../ethereum/hex.ts";
import { asText } from "../json/asText.ts";

/** A block as the ring takes it in: what it always keeps, and what it keeps of the newest ones. */
export interface SealedBlock {
  readonly block: RingBlock;
  readonly header: HeaderFields | undefined;
}

const BLOOM_HEX_LENGTH = 2 + 2 * 256;

/** Numbers above cannot be counted with doubles (the ring does); no chain has them. */
const MAX_NUMBER = BigInt(Number.MAX_SAFE_INTEGER);

const isCountable = (value: Quantity): boolean => BigInt(value) <= MAX_NUMBER;

/**
 * Parses a block or a header of a node. Returns undefined if it is none: `null`, a pending block without a hash, or a number or
 * time that is impossible.
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

/** The same from the UTF-8 JSON text of a result. */
export const readSealedBlock = (body: Uint8Array): SealedBlock | undefined => {
  try {
    return parseSealedBlock(JSON.parse(asText(body)));
  } catch {
    return undefined;
  }
};
