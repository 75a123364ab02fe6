import { formatData } from "../../../src/ethereum/hex.ts";
import type { Engine, TransactionResult } from "../../../src/evm/engine.ts";
import { TransactionError } from "../../../src/evm/transactionError.ts";
import { type PlainState, readerOf, withChanges } from "../builders/stateRoot.ts";
import type { FuzzCase } from "./randomWorld.ts";

/** What one engine made of one transaction, as text that can be compared. */
interface Observation {
  readonly outcome: string;
  readonly state: string;
}

const SEPARATOR = "\n";
/** The checks that a random transaction cannot pass. */
const CHECKS = { nonce: false, sender: false, freeGas: false };

const describe = (result: TransactionResult): string =>
  [
    result.status === "success" ? "success" : result.status,
    `output ${formatData(result.returnData)}`,
    `gas ${result.gasUsed} of ${result.maxUsedGas}`,
    `created ${result.created}`,
    ...result.logs.map(({ address, topics, data }) => `log ${address} ${topics.join(",")} ${data}`),
  ].join(SEPARATOR);

const describeState = (state: PlainState): string =>
  [...state]
    .map(([address, { nonce, balance, codeHash, storage }]) => {
      const slots = [...storage].map(([slot, value]) => `${slot}=${formatData(value)}`).sort();
      return `${address} nonce ${nonce} balance ${balance} code ${codeHash} ${slots.join(" ")}`;
    })
    .sort()
    .join(SEPARATOR);

const observe = async (engine: Engine, { state: before, block, transactions }: FuzzCase): Promise<Observation[]> => {
  const state = engine.createState(readerOf(before, block.blockHash));
  const observations: Observation[] = [];
  for (const message of transactions) {
    let outcome: string;
    try {
      outcome = describe(await engine.transact({ state, block }, message, { checks: CHECKS }));
    } catch (error) {
      if (!(error instanceof TransactionError)) {
        throw error;
      }
      outcome = `rejected ${error.message}`;
    }
    observations.push({ outcome, state: describeState(withChanges(before, state.changes())) });
  }
  return observations;
};

export interface Comparison {
  /** The first difference, as two texts. */
  readonly difference: string | undefined;
  readonly succeeded: number;
  readonly failed: number;
}

/** Executes the transactions of a case on both engines and compares every result and the state after it. */
export const compareEngines = async (one: Engine, other: Engine, fuzzCase: FuzzCase): Promise<Comparison> => {
  const [first, second] = [await observe(one, fuzzCase), await observe(other, fuzzCase)];
  const differing = first.findIndex(
    ({ outcome, state }, at) => outcome !== second[at]?.outcome || state !== second[at]?.state,
  );
  const succeeded = first.filter(({ outcome }) => outcome.startsWith("success")).length;
  return {
    difference:
      differing < 0
        ? undefined
        : `transaction ${differing}\n${diffLines(first[differing], second[differing]).join(SEPARATOR)}`,
    succeeded,
    failed: first.length - succeeded,
  };
};

const linesOf = (observed: Observation | undefined): string[] =>
  observed ? [...observed.outcome.split(SEPARATOR), ...observed.state.split(SEPARATOR)] : [];

const diffLines = (one: Observation | undefined, other: Observation | undefined): string[] => {
  const [ours, theirs] = [linesOf(one), linesOf(other)];
  return [
    ...ours.filter((line) => !theirs.includes(line)).map((line) => `  first: ${line}`),
    ...theirs.filter((line) => !ours.includes(line)).map((line) => `  second: ${line}`),
  ];
};
