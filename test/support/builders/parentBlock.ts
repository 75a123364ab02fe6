import { ZERO_ADDRESS, ZERO_HASH } from "../../../src/ethereum/hex.ts";
import type { BaseBlock } from "../../../src/simulation/simulatedHeader.ts";

/** A sealed block as the base of simulations in tests. */
export const PARENT: BaseBlock = {
  number: 100n,
  hash: `0x${"ab".repeat(32)}`,
  timestamp: 1_000n,
  miner: ZERO_ADDRESS,
  gasLimit: 60_000_000n,
  gasUsed: 0n,
  difficulty: 0n,
  mixHash: ZERO_HASH,
  extraData: "0x",
  baseFeePerGas: 7n,
  blobGasUsed: 0n,
  excessBlobGas: 0n,
  parentBeaconBlockRoot: ZERO_HASH,
};
