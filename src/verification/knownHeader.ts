import { EMPTY_OMMERS_HASH } from "../ethereum/blockHeader.ts";
import { type Hash, isHash } from "../ethereum/hex.ts";
import type { Fields } from "../json/jsonBytes.ts";
import { bytesOf, isSame, numberOf } from "./jsonFields.ts";

/** The fields of a block's header that its receipts must match. Plain data, sent to a thread. */
export interface ReceiptsHeader {
  readonly hash: string;
  readonly number: bigint;
  readonly receiptsRoot: string;
  readonly logsBloom: string;
  /** Logs may state it. Undefined: it is not compared. */
  readonly timestamp?: bigint;
  /** The hash was computed from the fields. A header with unknown fields may be accepted without that, and proves nothing. */
  readonly isComputed: boolean;
}

/** The fields of a block's header that its receipts, its logs, its access list and the proofs of its state must match. */
export interface KnownHeader extends ReceiptsHeader {
  readonly timestamp: bigint;
  readonly stateRoot: Hash | undefined;
  readonly accessListHash: Hash | undefined;
  readonly hasNoUncles: boolean;
}

/** Reads the header fields of a block object. Throws MalformedField. */
export const knownHeaderOf = (block: Fields, isComputed: boolean): KnownHeader => ({
  hash: bytesOf(block.hash, 32).toLowerCase(),
  number: numberOf(block.number),
  timestamp: numberOf(block.timestamp),
  stateRoot: isHash(block.stateRoot) ? block.stateRoot : undefined,
  accessListHash: isHash(block.blockAccessListHash) ? block.blockAccessListHash : undefined,
  hasNoUncles: isSame(block.sha3Uncles, EMPTY_OMMERS_HASH),
  receiptsRoot: bytesOf(block.receiptsRoot, 32),
  logsBloom: bytesOf(block.logsBloom, 256),
  isComputed,
});
