import { formatReads } from "../../core/formatReads.ts";
import { formatData } from "../../ethereum/hex.ts";
import type { TransactionResult } from "../engine.ts";
import type { ExecutionState } from "../executionState.ts";
import { NotExecutableError } from "../notExecutableError.ts";
import { TransactionError } from "../transactionError.ts";
import type { StepOutcome } from "./observedRun.ts";

/** The first value that differs, as text. */
export interface DifferentValue {
  readonly field: string;
  readonly ours: string;
  readonly reference: string;
}

/** A value that both engines must calculate, by the name of its field. */
type Field = readonly [field: string, value: string];

/** Returns the first field of two outcomes that differs. */
export const differenceOf = (ours: StepOutcome, reference: StepOutcome): DifferentValue | undefined =>
  firstDifference(fieldsOf(ours), fieldsOf(reference));

/** Whether an engine left the step to a node. */
export const isLeft = (outcome: StepOutcome | undefined): boolean =>
  outcome?.kind === "error" && outcome.error instanceof NotExecutableError;

export interface DifferentField extends DifferentValue {
  /** Formats the field that differs. */
  readonly read: (state: ExecutionState) => string;
}

/** Compares all accounts and slots that one of the two states wrote. */
export const stateDifference = (ours: ExecutionState, reference: ExecutionState): DifferentField | undefined => {
  const written = [ours.changes(), reference.changes()];
  for (const address of new Set(written.flatMap((changes) => [...changes.keys()]))) {
    const slots = new Set(written.flatMap((changes) => (changes.get(address)?.slots ?? []).map(([slot]) => slot)));
    const fields = (state: ExecutionState): readonly Field[] => [
      [`account ${address}`, formatAccount(state.accountOf(address))],
      ...[...slots].map((slot) => [`slot ${address} ${slot}`, formatData(state.storageOf(address, slot))] as const),
    ];
    const difference = firstDifference(fields(ours), fields(reference));
    if (difference !== undefined) {
      const read = (state: ExecutionState) => fields(state).find(([field]) => field === difference.field)?.[1] ?? "";
      return { ...difference, read };
    }
  }
  return undefined;
};

const formatAccount = (account: ReturnType<ExecutionState["accountOf"]>): string =>
  account === undefined ? "none" : `${account.nonce} ${account.balance} ${formatData(account.codeHash)}`;

const firstDifference = (ours: readonly Field[], reference: readonly Field[]): DifferentValue | undefined => {
  for (const [at, [field, value]] of ours.entries()) {
    const [otherField, otherValue] = reference[at] ?? ["none", ""];
    if (field !== otherField || value !== otherValue) {
      return { field, ours: value, reference: field === otherField ? otherValue : `${otherField} ${otherValue}` };
    }
  }
  return undefined;
};

/** The number of fields is the same for all results, so that they compare in order. */
const fieldsOf = (outcome: StepOutcome): readonly Field[] => {
  if (outcome.kind === "error") {
    return [["error", formatError(outcome.error)]];
  }
  const { result, reads } = outcome;
  const fields: readonly Field[] =
    result instanceof Uint8Array ? [["output", formatData(result)]] : resultFields(result);
  return [...fields, ["reads", formatReads(reads).join(", ")]];
};

/** A rejection has geth's words; other errors are faults of one engine. */
const formatError = (error: unknown): string =>
  error instanceof TransactionError ? `rejected: ${error.fault}` : String(error);

/** The difference of `gasBeforeRefund` and `gas` is the refund. */
const resultFields = (result: TransactionResult): readonly Field[] => [
  ["status", result.status],
  ["output", formatData(result.returnData)],
  ["gas", String(result.gasUsed)],
  ["gasBeforeRefund", String(result.maxUsedGas)],
  ["blobGas", String(result.blobGasUsed)],
  ["created", result.created ?? "none"],
  ["logs", JSON.stringify(result.logs.map(({ address, topics, data }) => [address, topics, data]))],
];
