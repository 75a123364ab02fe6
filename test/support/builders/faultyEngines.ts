import { smaller } from "../../../src/ethereum/bigintOrder.ts";
import { type Address, ZERO_ADDRESS } from "../../../src/ethereum/hex.ts";
import type { Engines } from "../../../src/evm/createEngines.ts";
import type { Engine, TransactionContext, TransactionResult } from "../../../src/evm/engine.ts";
import type { ExecutionState } from "../../../src/evm/executionState.ts";
import { recoverAuthority } from "../../../src/evm/senders/recoverAddress.ts";
import type { TransactionMessage } from "../../../src/evm/transactionMessage.ts";

/** The change that a faulty engine makes to a result, or to the state after it. */
export type Fault = (
  result: TransactionResult,
  context: TransactionContext,
  message: TransactionMessage,
) => TransactionResult;

/** The refund for an authority that exists (EIP-7702). */
const AUTHORITY_REFUND = 12_500n;
/** EIP-3529 */
const REFUND_QUOTIENT = 5n;

const isEmpty = (state: ExecutionState, address: Address): boolean =>
  state.nonceOf(address) === 0n && state.balanceOf(address) === 0n && state.codeOf(address).length === 0;

/** revm's refund for an authority that does not exist, but that an earlier transaction of the same state called. */
export const refundsTouchedAuthorities = (chainId: bigint): Fault => {
  const touched = new WeakMap<ExecutionState, Set<Address>>();
  return (result, { state }, { to, authorizationList }) => {
    const before = touched.get(state) ?? new Set();
    const known = authorizationList.some((each) => before.has(recoverAuthority(each, chainId) ?? ZERO_ADDRESS));
    const after = [...before, ...(to === null ? [] : [to])].filter((address) => isEmpty(state, address));
    touched.set(state, new Set(after));
    const refund = known ? smaller(AUTHORITY_REFUND, result.gasUsed / REFUND_QUOTIENT) : 0n;
    return { ...result, gasUsed: result.gasUsed - refund };
  };
};

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

/** Wraps engines with a fault in each transaction. */
export const faultyEngines = (engines: Engines, fault: Fault): Engines =>
  wrapEngines(engines, async (engine, context, message, options) =>
    fault(await engine.transact(context, message, options), context, message),
  );
