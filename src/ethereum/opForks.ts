import { OP_FORK_TIMES } from "./forkTimes.ts";
import type { ChainForks, OpForkTimes } from "./rules.ts";

export const createOpForks = (chainId: bigint, op: OpForkTimes): ChainForks => ({
  chainId,
  activations: [],
  blobs: {},
  op,
});

const rowOf = (chainId: bigint) => OP_FORK_TIMES.find((row) => BigInt(row.chainId) === chainId);

/** Returns the forks of a public chain of the OP stack, or `undefined` for any other chain. */
export const opForks = (chainId: bigint): ChainForks | undefined => {
  const row = rowOf(chainId);
  if (row === undefined) {
    return undefined;
  }
  const times = Object.entries(row.times).map(([fork, time]) => [fork, BigInt(time)] as const);
  const forks = createOpForks(chainId, { regolith: 0n, ...Object.fromEntries(times) });
  return row.ownRules ? { ...forks, unknownFrom: 0n } : forks;
};

/**
 * Native contracts of Base's nodes since Beryl, as addresses and prefixes of addresses. A B20 token has 0xb2, nine
 * zero bytes, and its variant (0 or 1) at byte 10.
 */
const BASE_NATIVES = [
  "0xb20f000000000000000000000000000000000000",
  "0x8453000000000000000000000000000000000001",
  "0x8453000000000000000000000000000000000002",
  `0xb2${"00".repeat(9)}00`,
  `0xb2${"00".repeat(9)}01`,
];

/** Returns addresses, or prefixes of addresses, whose code is native in a block of that time. A run that reads one is forwarded. */
export const nativeContracts = (chainId: bigint, timestamp: bigint): readonly string[] => {
  const beryl = rowOf(chainId)?.beryl;
  return beryl !== undefined && timestamp >= BigInt(beryl) ? BASE_NATIVES : [];
};
