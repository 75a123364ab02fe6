import type { Engines } from "../../../src/evm/createEngines.ts";
import type { Engine, TransactionContext, TransactionResult } from "../../../src/evm/engine.ts";
import type { TransactionMessage } from "../../../src/evm/transactionMessage.ts";

type Transact = (
  engine: Engine,
  context: TransactionContext,
  message: TransactionMessage,
  options: Parameters<Engine["transact"]>[2],
) => Promise<TransactionResult>;

/** Wraps engines with another execution of a transaction. */
export const wrapEngines =
  (engines: Engines, transact: Transact): Engines =>
  (rules): Engine => {
    const engine = engines(rules);
    return {
      rules,
      precompiles: engine.precompiles,
      isActive: (eip) => engine.isActive(eip),
      createState: (reader) => engine.createState(reader),
      transact: (context, message, options) => transact(engine, context, message, options),
      deposit: (context, deposit) => engine.deposit(context, deposit),
      systemCall: (context, to, data) => engine.systemCall(context, to, data),
    };
  };
