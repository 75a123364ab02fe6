import type { HeaderFields } from "../core/heads.ts";
import { nextBaseFee, nextExcessBlobGas } from "../ethereum/blockFees.ts";
import type { BlockHeader } from "../ethereum/blockHeader.ts";
import {
  type Address,
  type Data,
  type Hash,
  isAddress,
  isData,
  isHash,
  parseData,
  ZERO_HASH,
} from "../ethereum/hex.ts";
import { laterFields } from "../ethereum/nodeRules.ts";
import { isForkActive, type Rules } from "../ethereum/rules.ts";
import { CODES, RpcError } from "../jsonrpc/rpcError.ts";
import { quantityOf } from "../verification/jsonFields.ts";
import type { PlannedBlock } from "./blockPlan.ts";

/** The block that a call executes in, or that a simulation builds on. Plain data, sent between threads. */
export interface BaseBlock {
  readonly number: bigint;
  readonly hash: Hash;
  readonly timestamp: bigint;
  readonly miner: Address;
  readonly gasLimit: bigint;
  readonly gasUsed: bigint;
  readonly difficulty: bigint;
  readonly mixHash: Hash;
  readonly extraData: Data;
  readonly baseFeePerGas: bigint | undefined;
  readonly blobGasUsed: bigint;
  readonly excessBlobGas: bigint;
  readonly parentBeaconBlockRoot: Hash;
  readonly slotNumber?: bigint | undefined;
  /** Names of the fields that were added after Osaka. Nothing can be executed on this block if its rules have other fields. */
  readonly laterFields?: readonly string[];
}

/** `geth`: geth's rules for headers. `contract`: the rules of OP-stack nodes (docs/reference/simulate.md, Profiles). */
export type Profile = "contract" | "geth";

/** The header fields that are known before the calls run. */
export type HeaderStart = Omit<
  BlockHeader,
  | "transactionsRoot"
  | "receiptsRoot"
  | "logsBloom"
  | "gasUsed"
  | "blobGasUsed"
  | "withdrawalsRoot"
  | "requestsHash"
  | "stateRoot"
  | "blockAccessListHash"
>;

interface HeaderOptions {
  readonly profile: Profile;
  readonly validates: boolean;
  readonly rules: Rules;
  readonly parentRules: Rules;
}

/** Returns the header like geth's makeHeaders and processBlock, or like an OP-stack node with the profile `contract`. */
export const beginHeader = (parent: BaseBlock, block: PlannedBlock, options: HeaderOptions): HeaderStart => {
  const { profile, rules } = options;
  const { overrides } = block;
  const isGeth = profile === "geth";
  const baseFeePerGas = baseFeeOf(parent, block, options);
  return {
    parentHash: parent.hash,
    miner: overrides.feeRecipient ?? parent.miner,
    difficulty: isForkActive(rules, "paris") ? 0n : parent.difficulty,
    number: block.number,
    gasLimit: overrides.gasLimit ?? parent.gasLimit,
    timestamp: block.timestamp,
    extraData: isGeth ? "0x" : parent.extraData,
    mixHash: isGeth ? (overrides.prevRandao ?? ZERO_HASH) : ZERO_HASH,
    ...(baseFeePerGas === undefined ? {} : { baseFeePerGas }),
    // Without the parent's slot, that of the block is not known either.
    ...(parent.slotNumber === undefined ? {} : { slotNumber: parent.slotNumber + 1n }),
    ...(isForkActive(rules, "cancun")
      ? {
          excessBlobGas: isGeth ? excessBlobGasOf(parent, options) : 0n,
          parentBeaconBlockRoot: overrides.beaconRoot ?? (isGeth ? ZERO_HASH : parent.parentBeaconBlockRoot),
        }
      : {}),
  };
};

/** Without validation the base fee is zero, unless the client sets it. */
const baseFeeOf = (parent: BaseBlock, block: PlannedBlock, options: HeaderOptions): bigint | undefined => {
  const { rules, validates, parentRules } = options;
  if (!isForkActive(rules, "london")) {
    return undefined;
  }
  if (block.overrides.baseFeePerGas !== undefined) {
    return block.overrides.baseFeePerGas;
  }
  return validates ? nextBaseFee({ ...parent, extraData: parseData(parent.extraData) }, parentRules) : 0n;
};

const excessBlobGasOf = (parent: BaseBlock, { rules, parentRules }: HeaderOptions): bigint => {
  if (rules.blobs === undefined || !isForkActive(parentRules, "cancun")) {
    return 0n;
  }
  const { excessBlobGas, blobGasUsed, baseFeePerGas = 0n } = parent;
  return nextExcessBlobGas(
    { excessBlobGas, blobGasUsed, baseFee: baseFeePerGas },
    rules.blobs,
    isForkActive(rules, "osaka"),
  );
};

const wrong = (name: string) => new RpcError(CODES.SERVER, `header not found: the block of a node has no ${name}`);

/** Parses a node's block for a simulation on top of it. Throws RpcError if a required field is missing. */
export const parseBaseBlock = (fields: HeaderFields): BaseBlock => {
  const quantity = (name: string) => {
    const value = optional(name);
    if (value === undefined) {
      throw wrong(name);
    }
    return value;
  };
  const optional = (name: string) => quantityOf(fields[name]);
  const { hash, miner, extraData, mixHash, parentBeaconBlockRoot } = fields;
  if (!isHash(hash)) {
    throw wrong("hash");
  }
  if (!isAddress(miner)) {
    throw wrong("miner");
  }
  return {
    hash,
    miner,
    number: quantity("number"),
    timestamp: quantity("timestamp"),
    gasLimit: quantity("gasLimit"),
    gasUsed: quantity("gasUsed"),
    difficulty: optional("difficulty") ?? 0n,
    mixHash: isHash(mixHash) ? mixHash : ZERO_HASH,
    extraData: isData(extraData) ? extraData : "0x",
    baseFeePerGas: optional("baseFeePerGas"),
    blobGasUsed: optional("blobGasUsed") ?? 0n,
    excessBlobGas: optional("excessBlobGas") ?? 0n,
    parentBeaconBlockRoot: isHash(parentBeaconBlockRoot) ? parentBeaconBlockRoot : ZERO_HASH,
    slotNumber: optional("slotNumber"),
    laterFields: laterFields(fields),
  };
};
