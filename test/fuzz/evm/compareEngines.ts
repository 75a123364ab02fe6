import type { Engine } from "../../../src/evm/engine.ts";
import { findKnownFault } from "./knownFaults.ts";
import { type Observation, observe } from "./observation.ts";
import type { FuzzCase } from "./randomWorld.ts";

export interface Comparison {
  /** The first difference that is not known, as text. */
  readonly difference: string | undefined;
  /** Names of the known faults of the library that the case met. */
  readonly known: readonly string[];
  readonly succeeded: number;
  readonly failed: number;
}

/** Executes the transactions of a case on both engines. Compares every result and the state after it. */
export const compareEngines = async (one: Engine, other: Engine, fuzzCase: FuzzCase): Promise<Comparison> => {
  const [first, second] = [await observe(one, fuzzCase), await observe(other, fuzzCase)];
  const known: string[] = [];
  let difference: string | undefined;
  for (const [at, ours] of first.entries()) {
    const theirs = second[at] ?? { outcome: [], reads: [], state: [] };
    const lines = diffLines(ours, theirs);
    const fault = lines.length > 0 ? findKnownFault(fuzzCase.rules.fork, ours, theirs) : undefined;
    if (fault !== undefined) {
      known.push(fault);
    } else if (lines.length > 0) {
      difference = [`transaction ${at}`, ...lines].join("\n");
      break;
    }
  }
  const succeeded = first.filter(({ outcome }) => outcome[0] === "success").length;
  return { difference, known, succeeded, failed: first.length - succeeded };
};

const diffLines = (ours: Observation, theirs: Observation): string[] => {
  const [first, second] = [ours, theirs].map(({ outcome, reads, state }) => [...outcome, ...reads, ...state]) as [
    string[],
    string[],
  ];
  const isSame = first.length === second.length && first.every((line, at) => line === second[at]);
  return isSame
    ? []
    : [
        ...first.filter((line) => !second.includes(line)).map((line) => `  first: ${line}`),
        ...second.filter((line) => !first.includes(line)).map((line) => `  second: ${line}`),
      ];
};
