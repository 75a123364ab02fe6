import type { Engines } from "../../../src/evm/createEngines.ts";
import type { Engine, TransactionContext, TransactionResult } from "../../../src/evm/engine.ts";

/** The change that a faulty engine makes to a result, or to the state after it. */
export type Fault = (result: TransactionResult, context: TransactionContext) => TransactionResult;

/** Wraps engines with a fault in each transaction. */
export const faultyEngines =
  (engines: Engines, fault: Fault): Engines =>
  (rules): Engine => {
    const engine = engines(rules);
    return {
      rules,
      precompiles: engine.precompiles,
      isActive: (eip) => engine.isActive(eip),
      createState: (reader) => engine.createState(reader),
      transact: async (context, message, options) => fault(await engine.transact(context, message, options), context),
      deposit: (context, deposit) => engine.deposit(context, deposit),
      systemCall: (context, to, data) => engine.systemCall(context, to, data),
    };
  };
