import type { ReadSet } from "../../../src/core/readSet.ts";
import { formatData } from "../../../src/ethereum/hex.ts";
import type { Engine, TransactionContext, TransactionResult } from "../../../src/evm/engine.ts";
import { TransactionError } from "../../../src/evm/executionErrors.ts";
import { ReadRecorder } from "../../../src/evm/readRecorder.ts";
import type { TransactionMessage } from "../../../src/evm/transactionMessage.ts";
import { formatReads } from "../../support/builders/formatReads.ts";
import { type PlainState, readerOf, withChanges } from "../../support/builders/stateRoot.ts";
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
  ...result.logs.map(({ address, topics, data }) => `log ${address} ${topics.join(",")} ${data}`),
];

const describeState = (state: PlainState): string[] =>
  [...state]
    .map(([address, { nonce, balance, codeHash, storage }]) => {
      const slots = [...storage].map(([slot, value]) => `${slot}=${formatData(value)}`).sort();
      return `${address} nonce ${nonce} balance ${balance} code ${codeHash} ${slots.join(" ")}`;
    })
    .sort();

interface Run {
  readonly outcome: readonly string[];
  /** Undefined if the transaction was rejected. */
  readonly reads: ReadSet | undefined;
}

export const runTransaction = async (
  engine: Engine,
  context: TransactionContext,
  message: TransactionMessage,
): Promise<Run> => {
  const reads = new ReadRecorder();
  try {
    const result = await engine.transact({ ...context, reads }, message, { checks: CHECKS });
    return { outcome: describe(result), reads: reads.readSet() };
  } catch (error) {
    if (!(error instanceof TransactionError)) {
      throw error;
    }
    return { outcome: ["rejected", error.message], reads: undefined };
  }
};

/** Executes the transactions of a case in order. */
export const observe = async (
  engine: Engine,
  { state: before, block, transactions }: FuzzCase,
): Promise<Observation[]> => {
  const state = engine.createState(readerOf(before, block.blockHash));
  const observations: Observation[] = [];
  for (const message of transactions) {
    const { outcome, reads } = await runTransaction(engine, { state, block }, message);
    observations.push({
      outcome,
      reads: reads === undefined ? [] : formatReads(reads).map((key) => `read ${key}`),
      state: describeState(withChanges(before, state.changes())),
    });
  }
  return observations;
};
