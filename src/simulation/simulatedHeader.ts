import { nextBaseFee } from "../ethereum/baseFee.ts";
import { nextExcessBlobGas } from "../ethereum/blobFee.ts";
import type { BlockHeader } from "../ethereum/blockHeader.ts";
import { type Address, type Data, type Hash, parseData, ZERO_HASH } from "../ethereum/hex.ts";
import { isForkActive, type Rules } from "../ethereum/rules.ts";
import type { PlannedBlock } from "./blockPlan.ts";

/** The parent of a simulated block. Plain data, sent between threads. */
export interface ParentBlock {
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

export interface HeaderOptions {
  readonly profile: Profile;
  readonly validates: boolean;
  readonly rules: Rules;
  readonly parentRules: Rules;
}

/** Returns the header like geth's makeHeaders and processBlock, or like an OP-stack node with the profile `contract`. */
export const beginHeader = (parent: ParentBlock, block: PlannedBlock, options: HeaderOptions): HeaderStart => {
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
const baseFeeOf = (parent: ParentBlock, block: PlannedBlock, options: HeaderOptions): bigint | undefined => {
  const { rules, validates, parentRules } = options;
  if (!isForkActive(rules, "london")) {
    return undefined;
  }
  if (block.overrides.baseFeePerGas !== undefined) {
    return block.overrides.baseFeePerGas;
  }
  return validates ? nextBaseFee({ ...parent, extraData: parseData(parent.extraData) }, parentRules) : 0n;
};

const excessBlobGasOf = (parent: ParentBlock, { rules, parentRules }: HeaderOptions): bigint => {
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
