import type { BlobSchedule } from "./rules.ts";

const MIN_BLOB_BASE_FEE = 1n;
const GAS_PER_BLOB = 131_072n;
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

export interface BlobParent {
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
