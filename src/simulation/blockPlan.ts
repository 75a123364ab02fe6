import { RpcError } from "../jsonrpc/rpcError.ts";
import { type BlockStateCalls, SIMULATE_CODES } from "./payload.ts";

/** A block to simulate, with its number and timestamp. */
export interface PlannedBlock extends BlockStateCalls {
  readonly number: bigint;
  readonly timestamp: bigint;
  /** The block fills a gap between two numbers that the client requested. */
  readonly isGap: boolean;
}

export interface PlanOptions {
  /** Seconds between blocks if the client sets no time. */
  readonly timeStep: bigint;
  /** The largest distance of a block from the base block. */
  readonly maxBlocks: number;
  /** The timestamp of the first block if it is the pending block. */
  readonly firstTimestamp?: bigint | undefined;
}

const GAP = { overrides: {}, states: [], calls: [], isGap: true };

/**
 * Sets the number and timestamp of each block and fills gaps between numbers with empty blocks.
 * Throws RpcError if the numbers or times are not in order, or if there are too many blocks.
 * Source: geth's `sanitizeChain` (internal/ethapi/simulate.go), including the error texts.
 */
export const planBlocks = (
  base: { readonly number: bigint; readonly timestamp: bigint },
  blocks: readonly BlockStateCalls[],
  options: PlanOptions,
): readonly PlannedBlock[] => {
  const planned: PlannedBlock[] = [];
  let { number: lastNumber, timestamp: lastTime } = base;
  const nextTime = () => {
    const { firstTimestamp, timeStep } = options;
    return planned.length === 0 && firstTimestamp !== undefined ? firstTimestamp : lastTime + timeStep;
  };
  for (const block of blocks) {
    const number = block.overrides.number ?? lastNumber + 1n;
    if (number <= lastNumber) {
      throw new RpcError(SIMULATE_CODES.BLOCK_NUMBER, `block numbers must be in order: ${number} <= ${lastNumber}`);
    }
    if (number - base.number > BigInt(options.maxBlocks)) {
      throw new RpcError(SIMULATE_CODES.CLIENT_LIMIT, "too many blocks");
    }
    for (let gap = lastNumber + 1n; gap < number; gap++) {
      lastTime = nextTime();
      planned.push({ ...GAP, number: gap, timestamp: lastTime });
    }
    const timestamp = block.overrides.time ?? nextTime();
    if (timestamp <= lastTime) {
      throw new RpcError(
        SIMULATE_CODES.BLOCK_TIMESTAMP,
        `block timestamps must be in order: ${timestamp} <= ${lastTime}`,
      );
    }
    planned.push({ ...block, number, timestamp, isGap: false });
    lastNumber = number;
    lastTime = timestamp;
  }
  return planned;
};
