import { formatReads } from "../../../src/core/formatReads.ts";
import { formatData } from "../../../src/ethereum/hex.ts";
import type { Engine, TransactionResult } from "../../../src/evm/engine.ts";
import { ReadRecorder } from "../../../src/evm/readRecorder.ts";
import { TransactionError } from "../../../src/evm/transactionError.ts";
import { type PlainState, readerOf, withChanges } from "../builders/stateRoot.ts";
import type { FuzzCase } from "./randomWorld.ts";

/** The result of one transaction, what it read, and the state after it, as lines of text. */
export interface Observation {
  readonly outcome: readonly string[];
  /** Empty if the transaction was rejected. */
  readonly reads: readonly string[];
  readonly state: readonly string[];
}

/** The checks that a random transaction cannot pass. */
const CHECKS = { nonce: false, sender: false, freeGas: false };

const describe = (result: TransactionResult): string[] => [
  result.status,
  ...(result.halt === undefined ? [] : [`halt ${result.halt}`]),
  `output ${formatData(result.returnData)}`,
  `gas ${result.gasUsed} of ${result.maxUsedGas}`,
  `created ${result.created}`,
  `captured logs ${result.capturedLogs}`,
  ...result.logs.map(({ address, topics, data, index }) => `log ${index} ${address} ${topics.join(",")} ${data}`),
];

const describeState = (state: PlainState): string[] =>
  [...state]
    .map(([address, { nonce, balance, codeHash, storage }]) => {
      const slots = [...storage].map(([slot, value]) => `${slot}=${formatData(value)}`).sort();
      return `${address} nonce ${nonce} balance ${balance} code ${codeHash} ${slots.join(" ")}`;
    })
    .sort();

/** Executes the transactions of a case in order. */
export const observe = async (
  engine: Engine,
  { state: before, block, transactions }: FuzzCase,
): Promise<Observation[]> => {
  const state = engine.createState(readerOf(before, block.blockHash));
  const observations: Observation[] = [];
  for (const message of transactions) {
    let outcome: string[];
    let read: readonly string[] = [];
    try {
      const reads = new ReadRecorder();
      outcome = describe(await engine.transact({ state, block, reads }, message, { checks: CHECKS }));
      read = formatReads(reads.readSet()).map((key) => `read ${key}`);
    } catch (error) {
      if (!(error instanceof TransactionError)) {
        throw error;
      }
      outcome = ["rejected", error.message];
    }
    observations.push({ outcome, reads: read, state: describeState(withChanges(before, state.changes())) });
  }
  return observations;
};
