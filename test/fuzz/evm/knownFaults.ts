import { ETHEREUM_FORKS, type EthereumFork } from "../../../src/ethereum/rules.ts";
import {
  CODE_STORE_OUT_OF_GAS,
  CODE_TOO_LARGE,
  GAS_OVERFLOW,
  INIT_CODE_TOO_LARGE,
  OUT_OF_GAS,
} from "../../../src/evm/halts/haltText.ts";
import {
  BLOB_HASH_MISMATCH,
  BLOB_PROOF,
  INPUT_LENGTH,
  PAIRING_SIZE,
  TOP_BYTES,
} from "../../../src/evm/halts/precompileFault.ts";
import type { Observation } from "./observation.ts";

/** A difference between revm and the library that changes no state and no gas. */
interface KnownFault {
  readonly name: string;
  readonly forks: readonly EthereumFork[];
  matches(fast: Observation, library: Observation): boolean;
}

const equalEffects = (one: Observation, other: Observation): boolean =>
  one.state.join() === other.state.join() && one.reads.join() === other.reads.join();

const haltOf = ({ outcome }: Observation): string =>
  outcome.find((line) => line.startsWith(HALT))?.slice(HALT.length) ?? "";

/** Whether only the texts of two halts differ. */
const differByText = (one: Observation, other: Observation): boolean =>
  equalEffects(one, other) &&
  one.outcome.filter((line) => !line.startsWith(HALT)).join() ===
    other.outcome.filter((line) => !line.startsWith(HALT)).join();

const HALT = "halt ";
const UNDERFLOW = "stack underflow";
const PRECOMPILE_TEXTS: ReadonlySet<string> = new Set([
  INPUT_LENGTH,
  PAIRING_SIZE,
  BLOB_HASH_MISMATCH,
  BLOB_PROOF,
  TOP_BYTES,
]);

const SIZE_TEXTS: ReadonlySet<string> = new Set([CODE_TOO_LARGE, INIT_CODE_TOO_LARGE]);

const KNOWN_FAULTS: readonly KnownFault[] = [
  {
    // Before EIP-2 such a creation succeeds and leaves an account without code. Receipts had no status then.
    name: "the library reports a failure of a creation that has no gas for its code",
    forks: ["chainstart"],
    matches: (fast, library) =>
      fast.outcome[0] === "success" &&
      library.outcome.includes(`halt ${CODE_STORE_OUT_OF_GAS}`) &&
      equalEffects(fast, library),
  },
  {
    // The library replaces undefined opcodes by INVALID when it has analysed jumps.
    name: "the library has no name of an undefined opcode",
    forks: ETHEREUM_FORKS,
    matches: (fast, library) =>
      haltOf(fast).startsWith("invalid opcode: ") &&
      haltOf(library) === "invalid opcode: INVALID" &&
      differByText(fast, library),
  },
  {
    name: "the library counts the stack after an opcode has taken words",
    forks: ETHEREUM_FORKS,
    matches: (fast, library) =>
      haltOf(fast).startsWith(UNDERFLOW) && haltOf(library).startsWith(UNDERFLOW) && differByText(fast, library),
  },
  {
    name: "the library has no gas left to tell why it is out of gas",
    forks: ETHEREUM_FORKS,
    matches: (fast, library) =>
      haltOf(fast).startsWith(`${OUT_OF_GAS}: `) && haltOf(library) === OUT_OF_GAS && differByText(fast, library),
  },
  {
    // geth charges the opcode's constant before it computes the size of the memory (core/vm/interpreter.go).
    name: "the library computes the size of the memory before it charges the opcode's constant",
    forks: ETHEREUM_FORKS.slice(ETHEREUM_FORKS.indexOf("berlin")),
    matches: (fast, library) =>
      haltOf(fast) === OUT_OF_GAS && haltOf(library).endsWith(GAS_OVERFLOW) && differByText(fast, library),
  },
  {
    name: "the library does not name the size of code that is too large, and compares it first",
    forks: ETHEREUM_FORKS,
    matches: (fast, library) => SIZE_TEXTS.has(haltOf(library)) && differByText(fast, library),
  },
  {
    name: "the library has its own text for an input that a precompile rejects",
    forks: ETHEREUM_FORKS,
    matches: (fast, library) =>
      [fast, library].some((observed) => PRECOMPILE_TEXTS.has(haltOf(observed))) && differByText(fast, library),
  },
];

/** Returns the name of the known fault that explains a difference. */
export const findKnownFault = (fork: EthereumFork, fast: Observation, library: Observation): string | undefined =>
  KNOWN_FAULTS.find(({ forks, matches }) => forks.includes(fork) && matches(fast, library))?.name;
