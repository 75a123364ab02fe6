import { type BlockHeader, EMPTY_REQUESTS_HASH } from "../ethereum/blockHeader.ts";
import { parseData } from "../ethereum/hex.ts";
import type { PendingBlockState } from "./applyFlashblock.ts";

/** Returns the header of the block if it ended with its newest message (docs/reference/flashblocks.md, Block hash). */
export const pendingHeader = ({ environment, newest, transactionsRoot }: PendingBlockState): BlockHeader => ({
  parentHash: environment.parentHash,
  miner: environment.feeRecipient,
  stateRoot: newest.diff.stateRoot,
  transactionsRoot,
  receiptsRoot: newest.diff.receiptsRoot,
  logsBloom: parseData(newest.diff.logsBloom),
  number: environment.number,
  gasLimit: environment.gasLimit,
  gasUsed: newest.diff.gasUsed,
  timestamp: environment.timestamp,
  extraData: environment.extraData,
  mixHash: environment.prevRandao,
  baseFeePerGas: environment.baseFeePerGas,
  withdrawalsRoot: newest.diff.withdrawalsRoot,
  blobGasUsed: newest.diff.blobGasUsed ?? 0n,
  excessBlobGas: 0n,
  parentBeaconBlockRoot: environment.parentBeaconBlockRoot,
  requestsHash: EMPTY_REQUESTS_HASH,
});
