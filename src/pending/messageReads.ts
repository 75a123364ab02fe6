import { NO_KEYS, type StateChanges, type StateKeys } from "../core/stateReader.ts";
import type { ExecutionContext } from "../evm/engine.ts";
import { TooManyReadsError } from "../evm/executionErrors.ts";
import type { FetchingContext, RunProgress } from "../evm/reads/complete.ts";
import { alternatingGuesses } from "../evm/reads/guesses.ts";
import { type FoundKeys, KeySearch } from "../evm/reads/keySearch.ts";
import { StateKeySet } from "../evm/reads/stateKeySet.ts";
import type { ExecutedChain } from "./executedChain.ts";
import { executeTransaction, type Prepared } from "./executeTransaction.ts";
import { alwaysReadKeys, lacksCode, plainCallOf, type ReadSets } from "./expectedKeys.ts";
import { type MessageSteps, parentHashes } from "./messageSteps.ts";

/** Values that guesses may fetch for one message. */
const MAX_GUESSED = 10_000;
/** A transaction on guesses pays for gas, but its nonce and its sender's code may belong to a later state. */
const CHECKS = { nonce: false, sender: false, freeGas: false };
/** Calls that one request asks a node to trace. */
const MAX_HINTS = 16;
/** Values that one message may fetch. A cold slot costs 2,100 gas, so a block of 100M gas reads fewer. */
const MAX_FETCHED = 50_000;
/** After this number of values, predicted keys are no longer fetched. */
const MAX_PREDICTED = 2_000;

export interface MessageReadsOptions extends Pick<FetchingContext, "fetch"> {
  readonly steps: MessageSteps;
  /** Of the next messages. */
  readonly ahead: readonly MessageSteps[];
  readonly chain: ExecutedChain;
  /** The layers below the message, newest first. */
  readonly layers: readonly StateChanges[];
  readonly readSets: ReadSets;
  /** Time limit of a search on guesses. Then the round fetches the values that are missing so far. */
  readonly maxSearchMs: number;
}

/** Fetches the state that the steps of one message lack. Each round fetches what those after it lack, too, also of the next messages. */
export class MessageReads {
  readonly #options: MessageReadsOptions;
  /** The message, and the next ones. */
  readonly #messages: readonly MessageSteps[];
  readonly #search: KeySearch;
  /** Everything that the message and those below it have written, newest first. */
  #written: readonly StateChanges[] = [];
  /** Steps that were part of a hint. */
  readonly #hinted = new Set<number>();
  #guessed = 0;
  #fetched = 0;
  #predicted = NO_KEYS;

  constructor(options: MessageReadsOptions) {
    const { steps, ahead, chain, maxSearchMs } = options;
    this.#options = options;
    this.#messages = [steps, ...ahead];
    const runs = this.#messages.map((each) => each.run(parentHashes([each.message]), guessTransaction));
    this.#search = new KeySearch({
      run: {
        createState: (reader) => steps.engine.createState(reader),
        execute: async (all) => {
          for (const run of runs) {
            await run.execute(all);
          }
        },
      },
      readerOf: (missing, guesses) => chain.reader(this.#written, missing, guesses),
      guessesOf: alternatingGuesses,
      maxKeys: MAX_GUESSED,
      maxMs: maxSearchMs,
    });
  }

  /** Fetches `missing`, and what the steps after those that have results lack on guesses. Throws TooManyReadsError. */
  async fetch(missing: StateKeys, { results, state }: RunProgress): Promise<void> {
    const { steps, chain, layers, readSets, fetch } = this.#options;
    this.#written = [state.changes(), ...layers];
    const transaction = steps.transactionAt(results.length);
    if (transaction) {
      readSets.learn(transaction, missing);
    }
    const lacking = await this.#findLacking(results);
    const wanted = this.#wantedOf(lacking);
    wanted.add(missing);
    const hinted = this.#hintedOf(lacking);
    const calls = hinted.map((each) => plainCallOf(each.transaction));
    const { requested, traced, predicted } = await chain.fetch(wanted.keys(), calls, fetch);
    for (const { step } of traced > 0 ? hinted : []) {
      this.#search.close(step);
    }
    this.#predicted = traced === 0 && this.#fetched < MAX_PREDICTED ? predicted : NO_KEYS;
    this.#fetched += requested + traced;
    if (this.#fetched > MAX_FETCHED) {
      throw new TooManyReadsError(`it reads more than ${MAX_FETCHED} values that have to be fetched`);
    }
  }

  /** Searches for transactions that lack state. */
  async #findLacking(results: readonly unknown[]): Promise<readonly Lacking[]> {
    const found = this.#guessed > MAX_GUESSED ? [] : await this.#search.pass(results);
    return found.flatMap((each) => {
      const transaction = this.#transactionAt(each.step);
      return transaction ? { ...each, transaction } : [];
    });
  }

  #transactionAt(step: number): Prepared | undefined {
    let first = 0;
    for (const message of this.#messages) {
      if (step < first + message.count) {
        return message.transactionAt(step - first);
      }
      first += message.count;
    }
    return undefined;
  }

  #wantedOf(lacking: readonly Lacking[]): StateKeySet {
    const { steps, readSets } = this.#options;
    const wanted = new StateKeySet();
    for (const { transaction, keys } of lacking) {
      wanted.add(keys);
      readSets.learn(transaction, keys);
    }
    for (const keys of readSets.of(lacking.filter(({ count }) => count === 1).map(({ transaction }) => transaction))) {
      wanted.add(keys);
    }
    this.#guessed += wanted.size;
    if (this.#fetched === 0) {
      wanted.add(alwaysReadKeys(steps.message, steps.engine.rules));
    }
    if (wanted.size > 0) {
      wanted.add(this.#predicted);
    }
    return wanted;
  }

  /** A trace is worth its price if code is missing, or after more than one execution. Each transaction is traced once. */
  #hintedOf(lacking: readonly Lacking[]): readonly Lacking[] {
    const hinted = lacking
      .filter((each) => !this.#hinted.has(each.step) && (each.count > 1 || lacksCode(each.transaction, each.keys)))
      .slice(0, MAX_HINTS);
    for (const { step } of hinted) {
      this.#hinted.add(step);
    }
    return hinted;
  }
}

/** A transaction, and the keys that it lacks. */
interface Lacking extends FoundKeys {
  readonly transaction: Prepared;
}

/** A guess caused an error, or the transaction reports it when it executes. */
const guessTransaction = (context: ExecutionContext, transaction: Prepared): Promise<unknown> =>
  executeTransaction(context, transaction, 0n, { checks: CHECKS }).catch(() => undefined);
