/** Codes of eth_simulateV1: execution-apis, src/eth/execute.yaml, and geth's internal/ethapi/errors.go. */
export const SIMULATE_CODES = {
  REVERTED: 3,
  VM_ERROR: -32015,
  NONCE_TOO_LOW: -38010,
  NONCE_TOO_HIGH: -38011,
  FEE_CAP_TOO_LOW: -38012,
  INTRINSIC_GAS: -38013,
  INSUFFICIENT_FUNDS: -38014,
  BLOCK_GAS_LIMIT: -38015,
  BLOCK_NUMBER: -38020,
  BLOCK_TIMESTAMP: -38021,
  SENDER_NOT_EOA: -38024,
  INIT_CODE_SIZE: -38025,
  CLIENT_LIMIT: -38026,
} as const;
