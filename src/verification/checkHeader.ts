import { type BlockHeader, hashHeader } from "../ethereum/blockHeader.ts";
import { type Hash, parseData } from "../ethereum/hex.ts";
import type { Fields } from "../json/jsonBytes.ts";
import { type Finding, failed, failIfMalformed, passed, uncomputable } from "./findings.ts";
import { bytesOf, dataOf, isAbsent, isSame, numberOf } from "./jsonFields.ts";

const HEADER_FIELDS = [
  ...["parentHash", "sha3Uncles", "miner", "stateRoot", "transactionsRoot", "receiptsRoot", "logsBloom"],
  ...["difficulty", "number", "gasLimit", "gasUsed", "timestamp", "extraData", "mixHash", "nonce"],
  ...["baseFeePerGas", "withdrawalsRoot", "blobGasUsed", "excessBlobGas", "parentBeaconBlockRoot", "requestsHash"],
  ...["blockAccessListHash", "slotNumber"],
];
/** Fields that nodes add to a block object and that its hash does not cover. */
const ADDED_FIELDS = ["hash", "size", "totalDifficulty", "transactions", "uncles", "withdrawals", "author"];
const KNOWN_FIELDS: ReadonlySet<string> = new Set([...HEADER_FIELDS, ...ADDED_FIELDS]);

/** The fields that forks have added, in the order of their encoding. */
const FORK_FIELDS = HEADER_FIELDS.slice(HEADER_FIELDS.indexOf("baseFeePerGas"));

const optional = <T>(value: unknown, read: (value: unknown) => T): T | undefined =>
  isAbsent(value) ? undefined : read(value);
const hashOf = (value: unknown): Hash => bytesOf(value, 32);

/** Parses the header of a block object. Throws MalformedField. */
export const parseHeader = (block: Fields): BlockHeader => {
  const later = {
    baseFeePerGas: optional(block.baseFeePerGas, numberOf),
    withdrawalsRoot: optional(block.withdrawalsRoot, hashOf),
    blobGasUsed: optional(block.blobGasUsed, numberOf),
    excessBlobGas: optional(block.excessBlobGas, numberOf),
    parentBeaconBlockRoot: optional(block.parentBeaconBlockRoot, hashOf),
    requestsHash: optional(block.requestsHash, hashOf),
    blockAccessListHash: optional(block.blockAccessListHash, hashOf),
    slotNumber: optional(block.slotNumber, numberOf),
  };
  return {
    parentHash: hashOf(block.parentHash),
    sha3Uncles: hashOf(block.sha3Uncles),
    miner: bytesOf(block.miner, 20),
    stateRoot: hashOf(block.stateRoot),
    transactionsRoot: hashOf(block.transactionsRoot),
    receiptsRoot: hashOf(block.receiptsRoot),
    logsBloom: parseData(bytesOf(block.logsBloom, 256)),
    difficulty: numberOf(block.difficulty),
    number: numberOf(block.number),
    gasLimit: numberOf(block.gasLimit),
    gasUsed: numberOf(block.gasUsed),
    timestamp: numberOf(block.timestamp),
    extraData: dataOf(block.extraData),
    mixHash: hashOf(block.mixHash),
    nonce: bytesOf(block.nonce, 8),
    ...Object.fromEntries(Object.entries(later).filter(([, value]) => value !== undefined)),
  };
};

const hasUnknownFields = (block: Fields): boolean =>
  Object.keys(block).some((name) => !KNOWN_FIELDS.has(name) && !isAbsent(block[name]));

/** Returns undefined if a field is present although an earlier one is absent: the hash does not cover it. */
const countForkFields = (block: Fields): number | undefined => {
  const absentAt = FORK_FIELDS.findIndex((name) => isAbsent(block[name]));
  if (absentAt === -1) {
    return FORK_FIELDS.length;
  }
  return FORK_FIELDS.slice(absentAt).every((name) => isAbsent(block[name])) ? absentAt : undefined;
};

/** Whether a header has its own hash, as far as it can be computed. */
export const hasOwnHash = (header: Fields): boolean => checkHeader(header).outcome !== "failed";

/** Checks the hash of each header object once. */
export class OwnHashes {
  readonly #known = new WeakMap<Fields, Finding["outcome"]>();

  /** Whether a header has its own hash, as far as it can be computed. */
  has(header: Fields): boolean {
    return this.#outcome(header) !== "failed";
  }

  /** Whether the hash was computed and is the header's own. */
  hasComputed(header: Fields): boolean {
    return this.#outcome(header) === "passed";
  }

  #outcome(header: Fields): Finding["outcome"] {
    const known = this.#known.get(header);
    if (known !== undefined) {
      return known;
    }
    const { outcome } = checkHeader(header);
    this.#known.set(header, outcome);
    return outcome;
  }
}

/** Whether a header's hash was computed and is its own, so that the hash commits to the parent. */
export const hasHeaderHash = (header: Fields): boolean => checkHeader(header).outcome === "passed";

/** Whether two block objects have the same header: all fields that the hash covers. */
export const isSameHeader = (one: Fields, other: Fields): boolean =>
  HEADER_FIELDS.every((name) => one[name] === other[name] || (isAbsent(one[name]) && isAbsent(other[name])));

/** Checks that a block object's hash is the hash of its header. */
export const checkHeader = (block: Fields): Finding =>
  failIfMalformed("header", () => {
    const hash = hashOf(block.hash);
    const header = parseHeader(block);
    const forkFields = countForkFields(block);
    if (forkFields === undefined) {
      return failed("header");
    }
    const form = { number: header.number, forkFields };
    if (isSame(hash, hashHeader(header))) {
      return { ...passed("header"), header: form };
    }
    return hasUnknownFields(block) ? { ...uncomputable("header"), header: form } : failed("header");
  });
