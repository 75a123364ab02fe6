import type { Address } from "../../ethereum/hex.ts";
import { MAX_EXECUTION_GAS } from "../checks/transactionChecks.ts";
import type { TransactionChecks } from "../engine.ts";
import type { ExecutionState } from "../executionState.ts";
import { CODE_TOO_LARGE, INIT_CODE_TOO_LARGE, OUT_OF_GAS } from "../halts/haltText.ts";
import { NotExecutableError } from "../notExecutableError.ts";
import type { TransactionMessage } from "../transactionMessage.ts";
import { CODE_SIZE_LIMIT, CREATE_COLLISION, INIT_CODE_SIZE_LIMIT, PRECOMPILE_ERROR } from "./fastHalt.ts";
import type { ModuleResult } from "./fastResult.ts";

// The module lacks parts of Amsterdam's rules. A node must answer then.

/** EIP-7954 */
const MAX_CODE_BYTES = 65_536;
const MAX_INIT_CODE_BYTES = 131_072;
/** Position of the length among the operands of RETURN, and of CREATE and CREATE2. The top is 0. */
const RETURNED_LENGTH = 1;
const INIT_CODE_LENGTH = 2;

/** The new account, and the access of its delegation, before the first frame (EIP-2780, EIP-8037). */
const RECIPIENT_GAS = 183_600n + 3_000n;
/** The new account, its delegation, and the write, for one authorization. */
const AUTHORIZED_GAS = 9_000n + 143n * 1_530n;

/** Throws NotExecutableError for a transaction whose gas the module would not charge as the rules say. */
export const rejectUnsupported = (
  state: ExecutionState,
  { from, to, gas }: TransactionMessage,
  { liftsExecutionCap = false }: TransactionChecks,
): void => {
  if (gas > MAX_EXECUTION_GAS && !liftsExecutionCap) {
    throw new NotExecutableError("the module does not separate the gas of execution from that of state");
  }
  if (to === null && state.nonceOf(from) !== 0n) {
    throw new NotExecutableError("the module charges creations for the address of the sender's first nonce");
  }
};

/**
 * Returns the text of a halt without any opcode. If the gas did not suffice for the charges before the first frame, the module's
 * result is that of its last run. `undefined`: it is the transaction's own. Throws NotExecutableError if it may be either.
 */
export const haltBeforeFrame = (
  { code }: ModuleResult,
  { to, value, authorizationList }: TransactionMessage,
  gasLeft: bigint,
  precompiles: readonly Address[],
): string | undefined => {
  const own = to === null ? CREATE_COLLISION : PRECOMPILE_ERROR;
  if (code !== own || (to !== null && !precompiles.includes(to))) {
    return OUT_OF_GAS;
  }
  const recipientGas = to === null || value > 0n ? RECIPIENT_GAS : 0n;
  if (gasLeft >= recipientGas + BigInt(authorizationList.length) * AUTHORIZED_GAS) {
    return undefined;
  }
  throw new NotExecutableError("the module does not tell where the gas ended");
};

/** Returns geth's text for code that is too large. geth names the size since EIP-7954. */
export const formatTooLarge = ({ code, lastStep }: ModuleResult): string | undefined => {
  const lengthAt = (position: number) => `code size ${lastStep?.stack[position]} limit`;
  switch (code) {
    case CODE_SIZE_LIMIT:
      return `${CODE_TOO_LARGE}: ${lengthAt(RETURNED_LENGTH)} ${MAX_CODE_BYTES}`;
    case INIT_CODE_SIZE_LIMIT:
      return `${OUT_OF_GAS}: ${INIT_CODE_TOO_LARGE}: ${lengthAt(INIT_CODE_LENGTH)} ${MAX_INIT_CODE_BYTES}`;
    default:
      return undefined;
  }
};
