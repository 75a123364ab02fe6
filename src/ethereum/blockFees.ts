import { larger } from "./bigintOrder.ts";
import { type BlobSchedule, isForkActive, isOpForkActive, type Rules } from "./rules.ts";

/** EIP-1559 */
const INITIAL_BASE_FEE = 1_000_000_000n;
const ETHEREUM_ELASTICITY = 2n;
const ETHEREUM_DENOMINATOR = 8n;
/** Defaults of OP-stack chains since Canyon. They also replace zeros in extraData. */
const OP_ELASTICITY = 6n;
const OP_DENOMINATOR = 250n;
const OP_DENOMINATOR_BEFORE_CANYON = 50n;

const HOLOCENE_BYTES = 9;
const JOVIAN_BYTES = 17;

interface FeeParent {
  readonly gasLimit: bigint;
  readonly gasUsed: bigint;
  readonly baseFeePerGas: bigint | undefined;
  readonly blobGasUsed: bigint;
  readonly extraData: Uint8Array;
}

interface FeeRules {
  readonly elasticity: bigint;
  readonly denominator: bigint;
  readonly minBaseFee: bigint;
}

/** Fee parameters of an OP-stack chain's own configuration. They replace zeros in extraData. */
interface FeeDefaults {
  readonly elasticity: bigint;
  readonly denominator: bigint;
}

/**
 * Returns the base fee of the block after `parent`, in wei. `rules` are those of the parent.
 * Source: EIP-1559; on OP-stack chains the parameters of `feeRules`.
 */
export const nextBaseFee = (parent: FeeParent, rules: Rules, chain?: FeeDefaults): bigint => {
  const { baseFeePerGas: baseFee, gasLimit } = parent;
  if (baseFee === undefined) {
    return INITIAL_BASE_FEE;
  }
  const { elasticity, denominator, minBaseFee } = feeRules(parent, rules, chain);
  const used = usedGas(parent, rules);
  const target = gasLimit / elasticity;
  return larger(adjustBaseFee(baseFee, used, target, denominator), minBaseFee);
};

/** Moves the base fee towards the target. Above the target it rises by 1 wei or more. */
const adjustBaseFee = (baseFee: bigint, used: bigint, target: bigint, denominator: bigint): bigint => {
  if (used === target || target === 0n) {
    return baseFee;
  }
  if (used < target) {
    const change = (baseFee * (target - used)) / target / denominator;
    return change > baseFee ? 0n : baseFee - change;
  }
  const change = (baseFee * (used - target)) / target / denominator;
  return baseFee + (change === 0n ? 1n : change);
};

/**
 * Returns the gas that counts for the base fee. Since Jovian the larger of gas and data footprint counts.
 * Source: https://specs.optimism.io/protocol/jovian/exec-engine.html
 */
const usedGas = ({ gasUsed, blobGasUsed }: FeeParent, rules: Rules): bigint =>
  isOpForkActive(rules, "jovian") && blobGasUsed > gasUsed ? blobGasUsed : gasUsed;

/**
 * Returns the fee parameters for the block after the parent. Since Holocene the parent's extraData contains them:
 * version (1 byte), denominator (4), elasticity (4). Jovian adds the minimum base fee (8).
 */
const feeRules = ({ extraData }: FeeParent, rules: Rules, chain: FeeDefaults | undefined): FeeRules => {
  if (rules.op === undefined) {
    return { elasticity: ETHEREUM_ELASTICITY, denominator: ETHEREUM_DENOMINATOR, minBaseFee: 0n };
  }
  const defaults = {
    elasticity: OP_ELASTICITY,
    denominator: isForkActive(rules, "shanghai") ? OP_DENOMINATOR : OP_DENOMINATOR_BEFORE_CANYON,
    ...chain,
    minBaseFee: 0n,
  };
  if (!isOpForkActive(rules, "holocene") || extraData.length < HOLOCENE_BYTES) {
    return defaults;
  }
  const view = new DataView(extraData.buffer, extraData.byteOffset, extraData.byteLength);
  const denominator = BigInt(view.getUint32(1));
  const elasticity = BigInt(view.getUint32(5));
  const minBaseFee = extraData.length >= JOVIAN_BYTES ? view.getBigUint64(HOLOCENE_BYTES) : 0n;
  if (denominator === 0n || elasticity === 0n) {
    return { ...defaults, minBaseFee };
  }
  return { denominator, elasticity, minBaseFee };
};

const MIN_BLOB_BASE_FEE = 1n;
export const GAS_PER_BLOB = 131_072n;
/** EIP-7918 */
const BLOB_BASE_COST = 8_192n;

/** Returns `factor` times e to the power of `numerator` / `denominator`. Source: EIP-4844, `fake_exponential`. */
const exponential = (factor: bigint, numerator: bigint, denominator: bigint): bigint => {
  let sum = 0n;
  let term = factor * denominator;
  for (let step = 1n; term > 0n; step++) {
    sum += term;
    term = (term * numerator) / (denominator * step);
  }
  return sum / denominator;
};

/** Returns the base fee per blob gas, in wei. Source: EIP-4844, `get_base_fee_per_blob_gas`. */
export const blobBaseFee = (excessBlobGas: bigint, { updateFraction }: BlobSchedule): bigint =>
  exponential(MIN_BLOB_BASE_FEE, excessBlobGas, updateFraction);

interface BlobParent {
  readonly excessBlobGas: bigint;
  readonly blobGasUsed: bigint;
  readonly baseFee: bigint;
}

/**
 * Returns the excess blob gas of the block after `parent`. Source: EIP-4844.
 * With `hasReserve` (EIP-7918, since Osaka) the excess falls slower if blobs cost less than the gas to check them.
 */
export const nextExcessBlobGas = (parent: BlobParent, schedule: BlobSchedule, hasReserve: boolean): bigint => {
  const { target, max } = schedule;
  const excess = parent.excessBlobGas + parent.blobGasUsed;
  const targetGas = target * GAS_PER_BLOB;
  if (excess < targetGas) {
    return 0n;
  }
  if (hasReserve && BLOB_BASE_COST * parent.baseFee > GAS_PER_BLOB * blobBaseFee(parent.excessBlobGas, schedule)) {
    return parent.excessBlobGas + (parent.blobGasUsed * (max - target)) / max;
  }
  return excess - targetGas;
};
