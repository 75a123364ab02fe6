import { Common, type CustomCrypto, Mainnet } from "@ethereumjs/common";
import { getActivePrecompiles } from "@ethereumjs/evm";
import type { RunTxResult } from "@ethereumjs/vm";
import type { StateReader } from "../../core/stateReader.ts";
import { larger } from "../../ethereum/bigintOrder.ts";
import { type Address, formatData } from "../../ethereum/hex.ts";
import { keccak256 } from "../../ethereum/keccak.ts";
import { isForkActive, type Rules } from "../../ethereum/rules.ts";
import { CONSENSUS_CHECKS, type Cost, checkTransaction } from "../checks/checkTransaction.ts";
import { isDelegation, MAX_NONCE } from "../checks/transactionChecks.ts";
import type { DepositResult, Engine, TransactionContext, TransactionOptions, TransactionResult } from "../engine.ts";
import { NotExecutableError } from "../executionErrors.ts";
import type { ExecutionState } from "../executionState.ts";
import { BN254_POINT_BYTES, describeBn254 } from "../halts/precompileFault.ts";
import type { TransactionMessage } from "../transactionMessage.ts";
import { verifyKzgProof } from "./kzg.ts";
import { formatHalt } from "./libraryHalt.ts";
import { LibraryVm } from "./libraryVm.ts";
import { ReferenceState } from "./referenceState.ts";

const NOTHING = new Uint8Array(0);

/**
 * Executes with the library's own `runTx`. It throws NotExecutableError for what the library cannot do. That is: the rules of
 * OP stacks, those of Amsterdam, moved precompiles, transfers as logs, and calls that break a rule of the library.
 */
export class ReferenceEngine implements Engine {
  readonly rules: Rules;
  readonly precompiles: readonly Address[];
  readonly #common: Common;
  readonly #vm: LibraryVm;

  constructor(rules: Rules) {
    this.rules = rules;
    const chain = { ...Mainnet, chainId: Number(rules.chainId) };
    this.#common = new Common({ chain, hardfork: rules.fork, customCrypto: libraryCrypto });
    this.#vm = new LibraryVm(this.#common);
    this.precompiles = [...getActivePrecompiles(this.#common).keys()].map((key): Address => `0x${key}`);
  }

  isActive(eip: number): boolean {
    return this.#common.isActivatedEIP(eip);
  }

  createState(reader: StateReader): ReferenceState {
    return new ReferenceState(reader);
  }

  async transact(
    { state, block, reads }: TransactionContext,
    message: TransactionMessage,
    options: TransactionOptions = {},
  ): Promise<TransactionResult> {
    rejectIf(lackingFeature(this.rules, options));
    const { checks = CONSENSUS_CHECKS, tracesAccess = false } = options;
    const cost = checkTransaction({ engine: this, state, block, reads }, message, checks);
    rejectIf(lackingFreedom({ state, block }, message, { cost, hasBaseFee: this.isActive(1559) }));
    const run = await this.#vm.transact({ state: referenceStateOf(state), block, reads }, message, {
      skipsNonce: !checks.nonce,
      tracesAccess,
    });
    return resultOf(run, message, cost);
  }

  async deposit(): Promise<DepositResult> {
    throw new NotExecutableError("the library has no deposits");
  }

  async systemCall({ state, block, reads }: TransactionContext, to: Address, data: Uint8Array): Promise<Uint8Array> {
    rejectIf(lackingFeature(this.rules, {}));
    if (state.codeOf(to).length === 0) {
      reads?.account(to, "code");
      return NOTHING;
    }
    return this.#vm.callAsSystem({ state: referenceStateOf(state), block, reads }, to, data);
  }
}

const rejectIf = (missingFeature: string | undefined): void => {
  if (missingFeature !== undefined) {
    throw new NotExecutableError(`the reference engine has no ${missingFeature}`);
  }
};

const lackingFeature = (rules: Rules, options: TransactionOptions): string | undefined => {
  if (rules.op !== undefined) {
    return "rules of OP stacks";
  }
  if (isForkActive(rules, "amsterdam")) {
    // The library has an older draft.
    return "rules of Amsterdam";
  }
  if (options.tracesTransfers) {
    return "logs of transfers";
  }
  return options.movedPrecompiles?.size ? "moved precompiles" : undefined;
};

interface Price {
  readonly cost: Cost;
  readonly hasBaseFee: boolean;
}

/** Returns a rule that the library always checks and that this message, as a call without checks, breaks. */
const lackingFreedom = (
  { state, block }: TransactionContext,
  message: TransactionMessage,
  { cost, hasBaseFee }: Price,
): string | undefined => {
  const { from, nonce, maxFeePerBlobGas } = message;
  if (cost.isFree && hasBaseFee && block.baseFee > 0n) {
    return "free gas in a block with a base fee";
  }
  if (cost.blobGas > 0n && maxFeePerBlobGas < block.blobBaseFee) {
    return "free blobs";
  }
  const code = state.codeOf(from);
  if (code.length > 0 && !isDelegation(code)) {
    return "senders with code";
  }
  return state.nonceOf(from) === MAX_NONCE || nonce === MAX_NONCE ? "senders with the largest nonce" : undefined;
};

const referenceStateOf = (state: ExecutionState): ReferenceState => {
  if (state instanceof ReferenceState) {
    return state;
  }
  throw new TypeError("the state was created by an engine of another kind");
};

const rejectedPoint = ({ to, input }: TransactionMessage): string =>
  describeBn254(input, to === null ? undefined : BN254_POINT_BYTES.get(to));

const resultOf = (result: RunTxResult, message: TransactionMessage, cost: Cost): TransactionResult => {
  const { execResult, totalGasSpent, accessList, createdAddress } = result;
  const { exceptionError: error, returnValue, logs = [] } = execResult;
  const used = {
    gasUsed: totalGasSpent,
    maxUsedGas: larger(cost.intrinsic + execResult.executionGasUsed, cost.floor),
    blobGasUsed: cost.blobGas,
    ...(accessList && { accessed: accessList }),
  };
  if (error !== undefined) {
    // Only code can revert. The library's precompiles of bn254 use this error for inputs that they reject.
    const isRejected = error.error === "revert" && execResult.runState === undefined;
    const isRevert = error.error === "revert" && !isRejected;
    const halt = () => (isRejected ? rejectedPoint(message) : formatHalt(error, execResult.runState));
    return {
      ...used,
      status: isRevert ? "revert" : "halt",
      ...(!isRevert && { halt: halt() }),
      returnData: isRevert ? returnValue : NOTHING,
      logs: [],
    };
  }
  return {
    ...used,
    status: "success",
    returnData: returnValue,
    logs: logs.map((log) => ({
      address: formatData(log[0]),
      topics: log[1].map(formatData),
      data: formatData(log[2]),
      isTransfer: false,
    })),
    ...(createdAddress && { created: formatData(createdAddress.bytes) }),
  };
};

/** Replaces functions that only create or verify blobs. The point evaluation precompile needs `verifyProof` alone. */
const unsupported = (): never => {
  throw new Error("unsupported KZG function: only verifyProof is available");
};

/** The cryptography that the library takes from its user: a fast hash, and the verification that it does not have. */
export const libraryCrypto = {
  keccak256,
  kzg: {
    verifyProof: verifyKzgProof,
    blobToKzgCommitment: unsupported,
    computeBlobProof: unsupported,
    verifyBlobProofBatch: unsupported,
    computeCells: unsupported,
    computeCellsAndProofs: unsupported,
    recoverCellsAndProofs: unsupported,
    verifyCellKzgProofBatch: unsupported,
  },
} satisfies CustomCrypto;
