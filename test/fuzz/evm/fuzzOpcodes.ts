import { ETHEREUM_FORKS, type EthereumFork } from "../../../src/ethereum/rules.ts";

/** An opcode that takes words from the stack and may push one. */
export interface FuzzOpcode {
  readonly code: number;
  readonly inputs: number;
  readonly outputs: number;
  readonly since: EthereumFork;
}

const opcodes = (since: EthereumFork, inputs: number, outputs: number, codes: readonly number[]): FuzzOpcode[] =>
  codes.map((code) => ({ code, inputs, outputs, since }));

/** Opcodes whose inputs are plain words. Source: Yellow Paper, appendix H.2, and EIPs 145, 1344, 1884, 3198, 3855, 4844, 7516, 7939. */
export const WORD_OPCODES: readonly FuzzOpcode[] = [
  ...opcodes("chainstart", 2, 1, [0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x0a, 0x0b]),
  ...opcodes("chainstart", 3, 1, [0x08, 0x09]),
  ...opcodes("chainstart", 2, 1, [0x10, 0x11, 0x12, 0x13, 0x14, 0x16, 0x17, 0x18, 0x1a]),
  ...opcodes("chainstart", 1, 1, [0x15, 0x19, 0x35, 0x40]),
  ...opcodes("constantinople", 2, 1, [0x1b, 0x1c, 0x1d]),
  ...opcodes("osaka", 1, 1, [0x1e]),
  ...opcodes(
    "chainstart",
    0,
    1,
    [0x30, 0x32, 0x33, 0x34, 0x36, 0x38, 0x3a, 0x41, 0x42, 0x43, 0x44, 0x45, 0x58, 0x59, 0x5a],
  ),
  ...opcodes("byzantium", 0, 1, [0x3d]),
  ...opcodes("istanbul", 0, 1, [0x46, 0x47]),
  ...opcodes("london", 0, 1, [0x48]),
  ...opcodes("shanghai", 0, 1, [0x5f]),
  ...opcodes("cancun", 1, 1, [0x49]),
  ...opcodes("cancun", 0, 1, [0x4a]),
];

/** Opcodes whose first input is an address. */
export const ADDRESS_OPCODES: readonly FuzzOpcode[] = [
  ...opcodes("chainstart", 1, 1, [0x31, 0x3b]),
  ...opcodes("constantinople", 1, 1, [0x3f]),
];

export const isSince = (fork: EthereumFork, since: EthereumFork): boolean =>
  ETHEREUM_FORKS.indexOf(fork) >= ETHEREUM_FORKS.indexOf(since);
