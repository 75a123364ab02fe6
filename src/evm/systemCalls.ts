import { type Address, type Hash, parseData } from "../ethereum/hex.ts";
import { numberBytes } from "../ethereum/rlp.ts";
import { endTransaction } from "./applyTransaction.ts";
import type { BlockEnvironment, Engine } from "./engine.ts";
import { type StateOverlay, stripZeros } from "./stateOverlay.ts";

export const SYSTEM: Address = "0xfffffffffffffffffffffffffffffffffffffffe";
const SYSTEM_GAS = 30_000_000n;
export const BEACON_ROOTS: Address = "0x000f3df6d732807ef1319fb7b8bb8522d0beac02";
export const BLOCK_HASHES: Address = "0x0000f90827f1c53a10cb7a02335b175320002935";
export const RING_SLOTS = 8_191n;
const NOTHING = new Uint8Array(0);

/** A call by the chain itself: it costs nothing, and where there is no code nothing happens. */
export const systemCall = async (
  engine: Engine,
  state: StateOverlay,
  block: BlockEnvironment,
  to: Address,
  data: Uint8Array,
): Promise<Uint8Array> => {
  if (state.codeOf(to).length === 0) return NOTHING;
  const result = await engine.run(
    state,
    { caller: SYSTEM, to, value: 0n, data, gas: SYSTEM_GAS },
    { block, gasPrice: 0n, blobVersionedHashes: [], warmAddresses: [to, ...engine.precompiles], warmSlots: [] },
  );
  endTransaction(engine, state, result.destroyed);
  return result.returnData;
};

/** EIP-4788 and EIP-2935, by calling the contracts. */
export const beginBlock = async (
  engine: Engine,
  state: StateOverlay,
  block: BlockEnvironment,
  parentHash: Hash,
  parentBeaconBlockRoot: Hash,
): Promise<void> => {
  if (engine.isActive(4788)) await systemCall(engine, state, block, BEACON_ROOTS, parseData(parentBeaconBlockRoot));
  if (engine.isActive(2935)) await systemCall(engine, state, block, BLOCK_HASHES, parseData(parentHash));
};

/**
 * What the contracts of EIP-4788 and EIP-2935 write, written without them: nothing of them has to be read, and who does not ask
 * for it never fetches it.
 */
export const presetBlock = (
  engine: Engine,
  state: StateOverlay,
  block: BlockEnvironment,
  parentHash: Hash,
  parentBeaconBlockRoot: Hash,
): void => {
  if (engine.isActive(4788)) {
    const slot = block.timestamp % RING_SLOTS;
    state.presetStorage(BEACON_ROOTS, slotOf(slot), numberBytes(block.timestamp));
    state.presetStorage(BEACON_ROOTS, slotOf(slot + RING_SLOTS), stripZeros(parseData(parentBeaconBlockRoot)));
  }
  if (engine.isActive(2935)) {
    state.presetStorage(BLOCK_HASHES, slotOf((block.number - 1n) % RING_SLOTS), stripZeros(parseData(parentHash)));
  }
};

const slotOf = (number: bigint): Hash => `0x${number.toString(16).padStart(64, "0")}`;
