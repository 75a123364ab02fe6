import type { Address } from "../ethereum/hex.ts";
import type { Rules } from "../ethereum/rules.ts";
import { applyDeposit } from "./applyDeposit.ts";
import { applyTransaction, type ChainFees } from "./applyTransaction.ts";
import type { Engine, TransactionContext } from "./engine.ts";
import type { MessageEngine, MessagePlace } from "./evmMessage.ts";
import type { ExecutionState } from "./executionState.ts";
import { createMessageEngine } from "./messageEngine.ts";
import { l1AttributesOf, opChainFees } from "./opChainFees.ts";
import { endTransaction } from "./runTransaction.ts";
import { StateOverlay } from "./stateOverlay.ts";
import { SYSTEM, SYSTEM_GAS } from "./systemCalls.ts";

const NOTHING = new Uint8Array(0);

/** Makes the engine of one set of rules: the library's EVM with our own transaction rules, on a StateOverlay. */
export const createOverlayEngine = (rules: Rules): Engine => {
  const engine = createMessageEngine(rules);
  return {
    rules,
    precompiles: engine.precompiles,
    isActive: (eip) => engine.isActive(eip),
    createState: (reader) => new StateOverlay(reader),
    transact: (context, message, { raw, ...options } = {}) =>
      atomic(engine, context, (place) =>
        applyTransaction(place, message, { ...options, fees: chainFees(rules, place.state, raw) }),
      ),
    deposit: (context, deposit) => atomic(engine, context, (place) => applyDeposit(place, deposit)),
    systemCall: (context, to, data) => atomic(engine, context, (place) => callAsSystem(place, to, data)),
  };
};

/** Undoes all writes of `run` if it throws. */
const atomic = async <T>(
  engine: MessageEngine,
  { state, block }: TransactionContext,
  run: (place: MessagePlace) => Promise<T>,
): Promise<T> => {
  const overlay = overlayOf(state);
  overlay.mark();
  try {
    const result = await run({ engine, state: overlay, block });
    overlay.keep();
    return result;
  } catch (error) {
    overlay.abandon();
    throw error;
  }
};

const overlayOf = (state: ExecutionState): StateOverlay => {
  if (state instanceof StateOverlay) {
    return state;
  }
  throw new TypeError("the state was created by an engine of another kind");
};

/** The block's first deposit has written the L1 attributes. */
const chainFees = (rules: Rules, state: StateOverlay, raw: Uint8Array | undefined): ChainFees | undefined =>
  raw === undefined || rules.op === undefined ? undefined : opChainFees(rules, l1AttributesOf(state), raw);

const callAsSystem = async (place: MessagePlace, to: Address, data: Uint8Array): Promise<Uint8Array> => {
  const { engine, state, block } = place;
  if (state.codeOf(to).length === 0) {
    return NOTHING;
  }
  const result = await engine.run(
    state,
    { caller: SYSTEM, to, value: 0n, data, gas: SYSTEM_GAS },
    { block, gasPrice: 0n, blobVersionedHashes: [], warmAddresses: [to, ...engine.precompiles], warmSlots: [] },
  );
  endTransaction(place, result.destroyed);
  return result.returnData;
};
