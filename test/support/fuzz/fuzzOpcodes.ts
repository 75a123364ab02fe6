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

/** The other opcodes that a program may contain, by the fork that brought them. */
const OTHER: readonly (readonly [EthereumFork, readonly number[]])[] = [
  ["chainstart", [0x00, 0x20, 0x37, 0x39, 0x3c, 0x50, 0x51, 0x52, 0x53, 0x54, 0x55, 0x56, 0x57, 0x5b]],
  ["chainstart", Array.from({ length: 64 }, (_, at) => 0x60 + at)],
  ["chainstart", [0xa0, 0xa1, 0xa2, 0xa3, 0xa4, 0xf0, 0xf1, 0xf2, 0xf3, 0xff]],
  ["homestead", [0xf4]],
  ["byzantium", [0x3e, 0xfa, 0xfd]],
  ["constantinople", [0xf5]],
  ["cancun", [0x5c, 0x5d, 0x5e]],
];

export const isSince = (fork: EthereumFork, since: EthereumFork): boolean =>
  ETHEREUM_FORKS.indexOf(fork) >= ETHEREUM_FORKS.indexOf(since);

/** Returns all opcodes of a fork. */
export const opcodesOf = (fork: EthereumFork): ReadonlySet<number> =>
  new Set([
    ...[...WORD_OPCODES, ...ADDRESS_OPCODES].filter(({ since }) => isSince(fork, since)).map(({ code }) => code),
    ...OTHER.filter(([since]) => isSince(fork, since)).flatMap(([, codes]) => codes),
  ]);
