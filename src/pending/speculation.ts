import type { StateKeys, StateReader } from "../core/stateReader.ts";
import { type Address, formatData, formatQuantity } from "../ethereum/hex.ts";
import type { BlockEnvironment, Engine } from "../evm/engine.ts";
import { createLikelyGuesses, type Guesses, largeGuesses } from "../evm/guesses.ts";
import { createMissingState, type MissingState } from "../evm/missingState.ts";
import type { PlainCall } from "../evm/stateCalls.ts";
import { StateOverlay } from "../evm/stateOverlay.ts";
import { executeTransaction, type Prepared } from "./executeTransactions.ts";
import type { ReadSets } from "./readSets.ts";
import { createStateKeySet } from "./stateKeySet.ts";
import type { Turns } from "./turns.ts";

/** One round's guesses stop after this long: what is missing by then is fetched first. */
const ROUND_MS = 60;
/** Values that guesses may fetch for one message. */
const MAX_GUESSED = 10_000;
/** Each kind of guess leads past other branches: every so often a run has the other kind. */
const LARGE_EVERY = 4;
/** Calls that a node is asked about at once. */
const MAX_WISH = 16;
/** A transaction that runs on guesses pays, but its nonce and its sender's code may be those of a later moment. */
const CHECKS = { nonce: false, sender: false, freeGas: false };

export interface SpeculationOptions {
  readonly engine: Engine;
  readonly turns: Turns;
  readonly readSets: ReadSets;
  readonly transactions: readonly Prepared[];
  /** The block, and its state as far as it is known now; the rest is guessed. */
  readonly place: (
    missing: MissingState,
    guesses: Guesses,
  ) => { readonly reader: StateReader; readonly block: BlockEnvironment };
}

/** What is to be fetched next, and the calls for which a node may be asked what they read. */
export interface Round {
  readonly keys: StateKeys;
  readonly wish: readonly PlainCall[];
  /** The transactions of `wish`, by position. */
  readonly wished: readonly number[];
}

/** Runs each transaction by itself on guesses, to find what it will read. */
export interface Speculation {
  /** One round from that transaction on. */
  next(from: number, isUrgent: boolean): Promise<Round>;
  /** That transaction is not known to have all that it reads. */
  isOpen(position: number): boolean;
  /** What these transactions read was fetched, as far as a node could report it. */
  close(positions: readonly number[]): void;
  /** That transaction lacked a value after all. */
  reopen(position: number): void;
}

export const createSpeculation = (options: SpeculationOptions): Speculation => {
  const { engine, turns, readSets, transactions, place } = options;
  const open = new Set(transactions.keys());
  const wished = new Set<number>();
  const rounds = new Map<number, number>();
  let guessed = 0;

  const guess = async (prepared: Prepared, guesses: Guesses): Promise<StateKeys> => {
    const missing = createMissingState();
    const { reader, block } = place(missing, guesses);
    try {
      await executeTransaction({ engine, state: new StateOverlay(reader), block }, prepared, 0n, CHECKS);
    } catch {
      // It came of guesses, or will be seen when the transaction runs in its turn.
    }
    return missing.keys();
  };

  const explore = async (position: number, prepared: Prepared, isUrgent: boolean): Promise<StateKeys | undefined> => {
    const round = rounds.get(position) ?? 0;
    rounds.set(position, round + 1);
    const guesses = round % LARGE_EVERY === 0 ? largeGuesses : createLikelyGuesses();
    const found = await (isUrgent ? turns.urgent : turns.idle)(() => guess(prepared, guesses));
    if (isNothing(found)) {
      open.delete(position);
      return undefined;
    }
    readSets.learn(prepared.transaction, found);
    return found;
  };

  const next: Speculation["next"] = async (from, isUrgent) => {
    const found = createStateKeySet();
    const asked: number[] = [];
    const wish: PlainCall[] = [];
    const untilMs = performance.now() + ROUND_MS;
    if (guessed > MAX_GUESSED) return { keys: found.keys(), wish, wished: asked };
    for (const position of open) {
      const prepared = transactions[position];
      if (!prepared || position < from) open.delete(position);
      if (!prepared || position < from || performance.now() > untilMs) continue;
      const earlier = rounds.has(position) ? undefined : readSets.of(prepared.transaction);
      const keys = await explore(position, prepared, isUrgent);
      if (!keys) continue;
      found.add(keys);
      if (earlier) found.add(earlier);
      const isDeep = leadsOn(prepared, keys) || (rounds.get(position) ?? 0) > 1;
      if (wished.has(position) || wish.length >= MAX_WISH || !isDeep) continue;
      wished.add(position);
      asked.push(position);
      wish.push(callOf(prepared));
    }
    guessed += found.size;
    return { keys: found.keys(), wish, wished: asked };
  };

  return {
    next,
    isOpen: (position) => open.has(position),
    close: (positions) => {
      for (const position of positions) open.delete(position);
    },
    reopen: (position) => {
      open.add(position);
    },
  };
};

const isNothing = ({ accounts, slots, blockHashes }: StateKeys): boolean =>
  accounts.length + slots.length + blockHashes.length === 0;

const senderOf = (prepared: Prepared): Address => ("sender" in prepared ? prepared.sender : prepared.transaction.from);

/** A trace is worth its price if code is missing. Where only a sender or slots are, one round brings them. */
const leadsOn = (prepared: Prepared, { accounts }: StateKeys): boolean =>
  prepared.transaction.input.length > 0 && accounts.some((address) => address !== senderOf(prepared));

/** As a call object, without a price: nodes do not check the balance for gas then. */
const callOf = (prepared: Prepared): PlainCall => {
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
