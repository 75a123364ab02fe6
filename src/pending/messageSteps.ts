import { NO_VALUES, type StateReader, type StateValues } from "../core/stateReader.ts";
import type { PendingEnvironment } from "../core/view.ts";
import { formatWord, type Hash, parseData } from "../ethereum/hex.ts";
import { keccak256Hex } from "../ethereum/keccak.ts";
import { parseTransaction } from "../ethereum/parseTransaction.ts";
import { BEACON_ROOTS, BLOCK_HASHES } from "../ethereum/systemContracts.ts";
import { DEPOSIT_TYPE, InvalidTransaction, UnknownTransactionType } from "../ethereum/transaction.ts";
import type { BlockEnvironment, Engine, ExecutionContext } from "../evm/engine.ts";
import type { SteppedRun } from "../evm/reads/complete.ts";
import { recoverSender } from "../evm/senders/recoverAddress.ts";
import { RING_SLOTS, type SystemCall, startCalls } from "../evm/systemCalls.ts";
import type { DecodedTransaction, ExecutableMessage, UnverifiedReason } from "./executableMessage.ts";
import type { Prepared } from "./executeTransaction.ts";

/** What one message executes: the calls at its block's start, and its transactions. */
export class MessageSteps {
  readonly message: ExecutableMessage;
  readonly engine: Engine;
  readonly #startCalls: readonly SystemCall[];
  #decoded: readonly Decoded[] | undefined;
  #transactions: readonly Prepared[] | undefined;

  /** `earlier`: steps of the same message, whose transactions may be decoded. */
  constructor(message: ExecutableMessage, engine: Engine, earlier?: MessageSteps) {
    this.message = message;
    this.engine = engine;
    this.#decoded = earlier === undefined ? undefined : earlier.#decoded;
    this.#startCalls = message.index > 0 ? [] : startCalls(engine, message.environment);
  }

  /** All transactions of the message. They are decoded at the first use. Throws if one is not hexadecimal. */
  get decoded(): readonly Decoded[] {
    const { chainId } = this.engine.rules;
    this.#decoded ??= this.message.transactions.map((raw) => decodeTransaction(parseData(raw), chainId));
    return this.#decoded;
  }

  /** The transactions that can be executed. */
  get transactions(): readonly Prepared[] {
    this.#transactions ??= this.decoded.flatMap(({ prepared }) => prepared ?? []);
    return this.#transactions;
  }

  /** Number of steps, without the settlement. */
  get count(): number {
    return this.#startCalls.length + this.transactions.length;
  }

  /** Returns the transaction that this step of a run executes. */
  transactionAt(step: number): Prepared | undefined {
    return this.transactions[step - this.#startCalls.length];
  }

  /** Returns a run of all steps. `execute` gets the results of the transactions before. `settle` is the last step. */
  run<T>(
    ancestors: ReadonlyMap<bigint, Hash>,
    execute: (context: ExecutionContext, transaction: Prepared, before: readonly T[]) => Promise<T>,
    settle?: (context: ExecutionContext) => void,
  ): SteppedRun<readonly T[]> {
    const { engine } = this;
    return {
      createState: (reader) => engine.createState(reader),
      execute: async ({ step, reader }) => {
        const block = blockOf(this.message.environment, ancestors, reader);
        for (const call of this.#startCalls) {
          await step((state) => engine.systemCall({ state, block }, ...call));
        }
        const executed: T[] = [];
        for (const transaction of this.transactions) {
          executed.push(await step((state) => execute({ engine, state, block }, transaction, executed)));
        }
        if (settle) {
          await step((state) => settle({ engine, state, block }));
        }
        return executed;
      },
    };
  }
}

/** A decoded transaction of a flashblock, before its execution. */
interface Decoded {
  readonly raw: Uint8Array;
  readonly identity: DecodedTransaction;
  readonly prepared: Prepared | undefined;
  readonly unverified: UnverifiedReason | undefined;
  /** Details of `unverified`, for the log. */
  readonly cause?: string;
}

/**
 * Decodes a transaction for a chain. Invalid bytes have only a hash, and are `undecodable`. A transaction of a type that is not known
 * here may be right: it is `unexecutable`.
 */
export const decodeTransaction = (raw: Uint8Array, chainId: bigint): Decoded => {
  try {
    const transaction = parseTransaction(raw);
    const { hash } = transaction;
    if (transaction.type === DEPOSIT_TYPE) {
      return { raw, identity: { hash, sender: transaction.from }, prepared: { transaction }, unverified: undefined };
    }
    const sender = recoverSender(transaction);
    if (sender === undefined) {
      return { raw, identity: { hash, sender }, prepared: undefined, unverified: "undecodable" };
    }
    const isForeign = transaction.chainId !== undefined && transaction.chainId !== chainId;
    const unverified = isForeign ? "foreignChain" : undefined;
    return { raw, identity: { hash, sender }, prepared: { transaction, sender }, unverified };
  } catch (error) {
    if (!(error instanceof InvalidTransaction)) {
      throw error;
    }
    const identity = { hash: keccak256Hex(raw), sender: undefined };
    const unverified = error instanceof UnknownTransactionType ? "unexecutable" : "undecodable";
    return { raw, identity, prepared: undefined, unverified, cause: error.message };
  }
};

const BLOB_BASE_FEE_WITHOUT_BLOBS = 1n;

/** Returns the block environment that contracts see. */
export const blockOf = (
  environment: PendingEnvironment,
  ancestors: ReadonlyMap<bigint, Hash>,
  reader: StateReader,
): BlockEnvironment => ({
  number: environment.number,
  timestamp: environment.timestamp,
  coinbase: environment.feeRecipient,
  gasLimit: environment.gasLimit,
  baseFee: environment.baseFeePerGas,
  prevRandao: environment.prevRandao,
  blobBaseFee: BLOB_BASE_FEE_WITHOUT_BLOBS,
  blockHash: (number) => ancestors.get(number) ?? reader.blockHash(number),
});

/** Hashes of blocks that are not sealed here yet, by number: the block that follows has the hash of its parent. */
export const parentHashes = (
  messages: readonly { readonly environment: PendingEnvironment }[],
): ReadonlyMap<bigint, Hash> =>
  new Map(messages.map(({ environment: { number, parentHash } }) => [number - 1n, parentHash]));

const NOTHING = new Uint8Array(0);

/**
 * Returns zero values for the slots that the system calls at a block's start overwrite (EIP-4788, EIP-2935).
 * Their old values do not matter, so that no node has to be asked.
 */
export const overwritten = ({ number, timestamp }: PendingEnvironment): StateValues => {
  const time = timestamp % RING_SLOTS;
  return {
    ...NO_VALUES,
    slots: [
      [BEACON_ROOTS, formatWord(time), NOTHING],
      [BEACON_ROOTS, formatWord(time + RING_SLOTS), NOTHING],
      [BLOCK_HASHES, formatWord((number - 1n) % RING_SLOTS), NOTHING],
    ],
  };
};
