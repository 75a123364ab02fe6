import { RpcError } from "../jsonrpc/rpcError.ts";
import { SIMULATE_CODES } from "./codes.ts";
import type { BlockStateCalls } from "./payload.ts";

/** A block to be simulated, with its place in the chain. */
export interface PlannedBlock extends BlockStateCalls {
  readonly number: bigint;
  readonly timestamp: bigint;
  /** Fills the room between two blocks that the caller asked for. */
  readonly isGap: boolean;
}

export interface PlanOptions {
  /** Seconds from block to block where the caller says none. */
  readonly timeStep: bigint;
  readonly maxBlocks: number;
  /** Of the first block, where that is the pending one. */
  readonly firstTimestamp?: bigint;
}

const GAP = { overrides: {}, states: [], calls: [], isGap: true };

/** Numbers and times in order, and room between numbers filled with empty blocks. geth's rules and words (simulate.go, sanitizeChain). */
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
