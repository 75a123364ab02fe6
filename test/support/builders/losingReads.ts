import type { AccountReads, ReadSet } from "../../../src/core/readSet.ts";
import type { Engines } from "../../../src/evm/createEngines.ts";
import type { Engine } from "../../../src/evm/engine.ts";
import { ReadRecorder } from "../../../src/evm/readRecorder.ts";

export type LoseReads = (reads: ReadSet) => ReadSet;

/** Loses a part of what was read of each account. */
export const losingOfAccounts =
  (lose: (account: AccountReads) => AccountReads): LoseReads =>
  (reads) => ({ ...reads, accounts: reads.accounts.map(lose) });

/** Wraps engines that lose a part of what a transaction read on the way from the module. */
export const losingReads =
  (engines: Engines, lose: LoseReads): Engines =>
  (rules): Engine => {
    const engine = engines(rules);
    return {
      rules,
      precompiles: engine.precompiles,
      isActive: (eip) => engine.isActive(eip),
      createState: (reader) => engine.createState(reader),
      transact: async (context, message, options) => {
        const reads = new ReadRecorder();
        const result = await engine.transact({ ...context, reads }, message, options);
        context.reads?.add(lose(reads.readSet()));
        return result;
      },
      deposit: (context, deposit) => engine.deposit(context, deposit),
      systemCall: (context, to, data) => engine.systemCall(context, to, data),
    };
  };
