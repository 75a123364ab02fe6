import { LRUCache } from "lru-cache";
import type { StateChanges, StateKeys } from "../core/stateReader.ts";
import { type Address, formatData, formatQuantity } from "../ethereum/hex.ts";
import { createdAddress } from "../ethereum/receipt.ts";
import type { Transaction } from "../ethereum/transaction.ts";
import type { Engine } from "../evm/engine.ts";
import { createLikelyGuesses, type GuessedValues, largeGuesses } from "../evm/reads/guesses.ts";
import { MissingState } from "../evm/reads/missingState.ts";
import { StateKeySet } from "../evm/reads/stateKeySet.ts";
import type { PlainCall } from "../state/fetch/prefetch.ts";
import { blockOf, parentHashes } from "./blockState.ts";
import type { EngineTurns } from "./engineQueue.ts";
import type { ExecutedChain } from "./executedChain.ts";
import { executeTransaction, type Prepared } from "./executeTransactions.ts";
import type { FlashblockJob } from "./execution.ts";

/** Time limit for the guesses of one round. Then the round fetches the values that are missing so far. */
const ROUND_MS = 60;
/** Values that guesses may fetch for one message. */
const MAX_GUESSED = 10_000;
/** Each kind of guess leads to other branches of the code. One round in this number uses the other kind. */
const LARGE_EVERY = 4;
/** Calls that one request asks a node to trace. */
const MAX_HINTS = 16;
/** A transaction on guesses pays for gas, but its nonce and its sender's code may belong to a later state. */
const CHECKS = { nonce: false, sender: false, freeGas: false };
const NO_KEYS: StateKeys = { accounts: [], slots: [], blockHashes: [] };

/** What guesses of all jobs share. */
export interface SpeculationOptions {
  readonly chain: () => ExecutedChain;
  readonly engineQueue: EngineTurns;
  readonly readSets: ReadSets;
  /** Returns the layers that are known to be below the next transactions, newest first. */
  readonly written: () => readonly StateChanges[];
}

/** A job with the transactions that can be executed. */
export interface DecodedJob {
  readonly job: FlashblockJob;
  readonly engine: Engine;
  readonly transactions: readonly Prepared[];
}

/** The keys to fetch next, and the calls that a node can trace to report further keys. */
export interface Round {
  readonly keys: StateKeys;
  readonly hint: readonly PlainCall[];
  /** The transactions of `hint`, by position. */
  readonly hinted: readonly number[];
}

/** Executes each transaction by itself on guesses, to find the state that it will read. */
export class Speculation {
  readonly #options: SpeculationOptions;
  readonly #decoded: DecodedJob;
  /** Positions of the transactions that may lack state. */
  readonly #open: Set<number>;
  /** Transactions that were part of a hint. */
  readonly #hinted = new Set<number>();
  /** Number of rounds of each transaction. */
  readonly #rounds = new Map<number, number>();
  /** Contracts and selectors whose earlier keys are fetched. */
  readonly #recalled = new Set<string>();
  #guessed = 0;

  constructor(options: SpeculationOptions, decoded: DecodedJob) {
    this.#options = options;
    this.#decoded = decoded;
    this.#open = new Set(decoded.transactions.keys());
  }

  /** Whether the transaction may lack state. */
  isOpen(position: number): boolean {
    return this.#open.has(position);
  }

  /** The state of these transactions was fetched, as far as a node could report it. */
  close(positions: readonly number[]): void {
    for (const position of positions) {
      this.#open.delete(position);
    }
  }

  /** The transaction lacked a value after all. */
  reopen(position: number): void {
    this.#open.add(position);
  }

  /** One round, for the transactions from that position on. */
  async next(from: number, isUrgent: boolean): Promise<Round> {
    const keys = new StateKeySet();
    const hinted: number[] = [];
    const hint: PlainCall[] = [];
    const untilMs = performance.now() + ROUND_MS;
    if (this.#guessed > MAX_GUESSED) {
      return { keys: keys.keys(), hint, hinted };
    }
    for (const position of this.#open) {
      const prepared = this.#transactionAt(position, from);
      if (!prepared || performance.now() > untilMs) {
        continue;
      }
      const isFirst = !this.#rounds.has(position);
      const missing = await this.#explore(position, prepared, isUrgent);
      if (!missing) {
        continue;
      }
      keys.add(missing);
      if (isFirst) {
        keys.add(this.#expected(prepared));
      }
      if (hint.length < MAX_HINTS && this.#needsHint(position, prepared, missing)) {
        this.#hinted.add(position);
        hinted.push(position);
        hint.push(callOfPrepared(prepared));
      }
    }
    this.#guessed += keys.size;
    return { keys: keys.keys(), hint, hinted };
  }

  /** Returns the keys that the transaction will probably read. Those of its contract and selector are returned once a message. */
  #expected(prepared: Prepared): StateKeys {
    const created = createdBy(prepared);
    return created === undefined
      ? (this.#options.readSets.of(prepared.transaction, this.#recalled) ?? NO_KEYS)
      : { accounts: [created], slots: [], blockHashes: [] };
  }

  /** Transactions before `from` have run, and are closed here. */
  #transactionAt(position: number, from: number): Prepared | undefined {
    const prepared = position < from ? undefined : this.#decoded.transactions[position];
    if (!prepared) {
      this.#open.delete(position);
    }
    return prepared;
  }

  /** A trace is worth its price if code is missing, or after more than one round. Each transaction is traced once. */
  #needsHint(position: number, prepared: Prepared, missing: StateKeys): boolean {
    if (this.#hinted.has(position)) {
      return false;
    }
    return lacksCode(prepared, missing) || (this.#rounds.get(position) ?? 0) > 1;
  }

  /** Returns the keys that the transaction lacks, or `undefined` if it lacks none. */
  async #explore(position: number, prepared: Prepared, isUrgent: boolean): Promise<StateKeys | undefined> {
    const { engineQueue, readSets } = this.#options;
    const round = this.#rounds.get(position) ?? 0;
    this.#rounds.set(position, round + 1);
    const guesses = round % LARGE_EVERY === 0 ? largeGuesses : createLikelyGuesses();
    const missing = await (isUrgent ? engineQueue.urgent : engineQueue.idle)(() => this.#guess(prepared, guesses));
    if (isEmptySet(missing)) {
      this.#open.delete(position);
      return undefined;
    }
    readSets.learn(prepared.transaction, missing);
    return missing;
  }

  async #guess(prepared: Prepared, guesses: GuessedValues): Promise<StateKeys> {
    const { chain, written } = this.#options;
    const { job, engine } = this.#decoded;
    const missing = new MissingState();
    const reader = chain().reader(written(), missing, guesses);
    const block = blockOf(job.environment, parentHashes([job]), reader);
    try {
      await executeTransaction({ engine, state: engine.createState(reader), block }, prepared, 0n, CHECKS);
    } catch {
      // A guess caused the error, or the transaction reports it when it executes.
    }
    return missing.keys();
  }
}

const isEmptySet = ({ accounts, slots, blockHashes }: StateKeys): boolean =>
  accounts.length + slots.length + blockHashes.length === 0;

/** If only the sender or slots are missing, one round fetches them. */
const lacksCode = (prepared: Prepared, { accounts }: StateKeys): boolean =>
  prepared.transaction.input.length > 0 && accounts.some((address) => address !== senderOf(prepared));

const senderOf = (prepared: Prepared): Address => ("sender" in prepared ? prepared.sender : prepared.transaction.from);

/** Returns the address of the contract that a signed transaction creates. A run on guesses cannot know the sender's nonce. */
const createdBy = (prepared: Prepared): Address | undefined =>
  "sender" in prepared && prepared.transaction.to === null
    ? createdAddress(prepared.sender, prepared.transaction.nonce)
    : undefined;

/** Formats a transaction as a call object without a gas price, so that nodes do not check the balance for gas. */
const callOfPrepared = (prepared: Prepared): PlainCall => {
  const { transaction } = prepared;
  const { to, value, input, gas } = transaction;
  return {
    from: senderOf(prepared),
    ...(to === null ? {} : { to }),
    gas: formatQuantity(gas),
    value: formatQuantity(value),
    data: formatData(input),
    ...("authorizationList" in transaction ? { authorizationList: transaction.authorizationList } : {}),
  };
};

const MAX_CALLS = 4_000;
/** Limit for one contract and selector. */
const MAX_KEYS = 512;
const SELECTOR_BYTES = 4;

const callOf = ({ to, input }: Transaction): string | undefined =>
  to === null ? undefined : `${to}${formatData(input.subarray(0, SELECTOR_BYTES))}`;

/** The keys that earlier transactions read, by contract and selector. Values change from block to block, keys rarely do. */
export class ReadSets {
  readonly #sets = new LRUCache<string, StateKeySet>({ max: MAX_CALLS });

  /** `omitted`: contracts and selectors whose keys are left out. This one is added to it. */
  of(transaction: Transaction, omitted: Set<string>): StateKeys | undefined {
    const call = callOf(transaction);
    if (call === undefined || omitted.has(call)) {
      return undefined;
    }
    omitted.add(call);
    return this.#sets.get(call)?.keys();
  }

  learn(transaction: Transaction, keys: StateKeys): void {
    const call = callOf(transaction);
    if (call === undefined) {
      return;
    }
    const readSet = this.#sets.get(call) ?? new StateKeySet();
    if (readSet.size < MAX_KEYS) {
      readSet.add(keys);
    }
    this.#sets.set(call, readSet);
  }
}
