import type { StateReader } from "../../core/stateReader.ts";
import { formatData, type Hash } from "../../ethereum/hex.ts";
import { keccak256Hex } from "../../ethereum/keccak.ts";
import type { Engines } from "../createEngines.ts";
import type { Engine, TransactionContext } from "../engine.ts";
import { NotExecutableError } from "../notExecutableError.ts";
import type { TransactionMessage } from "../transactionMessage.ts";

/** Wraps engines: a run that reads an account with one of these codes, or that begins with one, throws NotExecutableError. */
export const withoutCodes = (engines: Engines, codes: readonly Hash[]): Engines => {
  if (codes.length === 0) {
    return engines;
  }
  const forwarded = new Set(codes);
  return (rules) => guarded(engines(rules), forwarded);
};

const guarded = (engine: Engine, codes: ReadonlySet<Hash>): Engine => ({
  rules: engine.rules,
  precompiles: engine.precompiles,
  isActive: (eip) => engine.isActive(eip),
  createState: (reader) => engine.createState(guardedReader(reader, codes)),
  transact: async (context, message, options) => {
    // The code of an override or of a creation is not read from the reader.
    reject(entryOf(context, message), codes);
    return engine.transact(context, message, options);
  },
  deposit: (context, deposit) => engine.deposit(context, deposit),
  systemCall: (context, to, data) => engine.systemCall(context, to, data),
});

const guardedReader = (reader: StateReader, codes: ReadonlySet<Hash>): StateReader => ({
  account: (address) => {
    const account = reader.account(address);
    reject(account?.codeHash, codes);
    return account;
  },
  code: (hash, address) => reader.code(hash, address),
  storage: (address, slot) => reader.storage(address, slot),
  blockHash: (number) => reader.blockHash(number),
});

const reject = (code: Hash | undefined, codes: ReadonlySet<Hash>): void => {
  if (code !== undefined && codes.has(code)) {
    throw new NotExecutableError(`the engines differ on the code ${code}`);
  }
};

/** What a step calls. */
export type CalledCode = Pick<TransactionMessage, "to" | "input">;

/** Returns the hash of the code that a transaction runs first; `undefined` if its recipient has no code. */
export const entryOf = ({ state }: Pick<TransactionContext, "state">, { to, input }: CalledCode): Hash | undefined => {
  if (to === null) {
    return keccak256Hex(input);
  }
  const account = state.codeOf(to).length > 0 ? state.accountOf(to) : undefined;
  return account && formatData(account.codeHash);
};
