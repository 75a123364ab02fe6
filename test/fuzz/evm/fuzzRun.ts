import { formatData } from "../../../src/ethereum/hex.ts";
import { ETHEREUM_FORKS, type EthereumFork } from "../../../src/ethereum/rules.ts";
import type { Engines } from "../../../src/evm/createEngines.ts";
import { createRandom } from "../../support/builders/randomValues.ts";
import { compareEngines } from "./compareEngines.ts";
import { ExecutedOpcodes } from "./executedOpcodes.ts";
import { findLostRead } from "./findLostRead.ts";
import { type FuzzCase, randomCase } from "./randomWorld.ts";

/**
 * Forks that both engines know. revm has no rules of Constantinople: on mainnet it began in one block with Petersburg.
 * The library has an older draft of Amsterdam.
 */
export const FUZZ_FORKS: readonly EthereumFork[] = ETHEREUM_FORKS.filter(
  (fork) => fork !== "constantinople" && fork !== "amsterdam",
);

/** Share of the cases whose opcodes are recorded, after all opcodes of their fork have run. */
const SAMPLE = 0.02;
const MAX_REPORTED = 20;
const SEEDS = 2 ** 32;

/** A case can be created again from its fork and its seed. */
export interface CaseId {
  readonly fork: EthereumFork;
  readonly seed: number;
}

export const fuzzCaseOf = ({ fork, seed }: CaseId): FuzzCase => randomCase(createRandom(seed), fork);

interface Difference extends CaseId {
  readonly difference: string;
  /** The whole case as JSON, which does not depend on the generator. */
  readonly payload: string;
}

/** Counts what one run found. */
export class FuzzRun {
  readonly #engines: readonly [Engines, Engines];
  readonly #opcodes = new Map<EthereumFork, ExecutedOpcodes>();
  readonly #known = new Map<string, number>();
  readonly #differences: Difference[] = [];
  #programs = 0;
  #succeeded = 0;

  constructor(fast: Engines, reference: Engines) {
    this.#engines = [fast, reference];
  }

  get programs(): number {
    return this.#programs;
  }

  get differences(): readonly Difference[] {
    return this.#differences;
  }

  get successShare(): number {
    return this.#succeeded / this.#programs;
  }

  /** Runs cases of all forks in turn until `isDone` returns true. */
  async run(seed: number, isDone: () => boolean): Promise<void> {
    const random = createRandom(seed);
    while (!isDone()) {
      for (const fork of FUZZ_FORKS) {
        const id = { fork, seed: Math.floor(random() * SEEDS) };
        const isSampled = random() < SAMPLE;
        await this.runCase(id);
        const opcodes = this.#opcodesOf(fork);
        if (isSampled || opcodes.missing.length > 0) {
          await opcodes.run(fuzzCaseOf(id));
        }
        if (isDone()) {
          return;
        }
      }
    }
  }

  async runCase(id: CaseId): Promise<void> {
    const fuzzCase = fuzzCaseOf(id);
    const [fast, reference] = this.#engines.map((engines) => engines(fuzzCase.rules));
    if (fast === undefined || reference === undefined) {
      throw new Error("two engines are needed");
    }
    const { difference, known, succeeded, failed } = await compareEngines(fast, reference, fuzzCase);
    this.#programs += succeeded + failed;
    this.#succeeded += succeeded;
    for (const name of known) {
      this.#known.set(name, (this.#known.get(name) ?? 0) + 1);
    }
    const found = difference ?? (await findLostRead(fast, fuzzCase, createRandom(id.seed + 1)));
    if (found !== undefined) {
      this.#differences.push({ ...id, difference: found, payload: formatCase(fuzzCase) });
    }
  }

  report() {
    const share = (value: number) => Math.round(value * 1_000) / 1_000;
    return {
      programs: this.#programs,
      succeeded: share(this.successShare),
      failed: share(1 - this.successShare),
      differences: this.#differences.length,
      first: this.#differences.slice(0, MAX_REPORTED),
      knownLibraryFaults: Object.fromEntries(this.#known),
      coverage: Object.fromEntries([...this.#opcodes].map(([fork, executed]) => [fork, describe(executed)])),
    };
  }

  /** Opcodes that no program has executed, by fork. */
  get missing(): readonly string[] {
    return [...this.#opcodes].flatMap(([fork, { missing }]) => missing.map((name) => `${fork} ${name}`));
  }

  #opcodesOf(fork: EthereumFork): ExecutedOpcodes {
    const existing = this.#opcodes.get(fork);
    if (existing !== undefined) {
      return existing;
    }
    const created = new ExecutedOpcodes(fork);
    this.#opcodes.set(fork, created);
    return created;
  }
}

const describe = ({ defined, missing, outOfGas, precompiles, delegated }: ExecutedOpcodes) => ({
  opcodes: `${defined - missing.length} of ${defined}`,
  missing: missing.join(" "),
  outOfGas,
  precompiles: precompiles.map((address) => address.toString(16)).join(" "),
  delegated,
});

const formatCase = (fuzzCase: FuzzCase): string =>
  JSON.stringify(fuzzCase, (_, value: unknown) => {
    if (value instanceof Uint8Array) {
      return formatData(value);
    }
    if (value instanceof Map) {
      return Object.fromEntries(value);
    }
    return typeof value === "bigint" ? `0x${value.toString(16)}` : value;
  });
