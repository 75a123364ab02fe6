import { type Address, type Hash, parseData } from "../ethereum/hex.ts";
import { numberBytes } from "../ethereum/rlp.ts";
import type { ExecutionContext } from "./engine.ts";
import { endTransaction } from "./runTransaction.ts";
import { stripZeros } from "./stateOverlay.ts";

export const SYSTEM: Address = "0xfffffffffffffffffffffffffffffffffffffffe";
const SYSTEM_GAS = 30_000_000n;
/** EIP-4788 */
export const BEACON_ROOTS: Address = "0x000f3df6d732807ef1319fb7b8bb8522d0beac02";
/** EIP-2935 */
export const BLOCK_HASHES: Address = "0x0000f90827f1c53a10cb7a02335b175320002935";
/** Blocks that the ring buffer of either contract holds. */
export const RING_SLOTS = 8_191n;
const NOTHING = new Uint8Array(0);

/** Calls a contract as the system account. The call is free. It does nothing if the account has no code. */
export const systemCall = async (context: ExecutionContext, to: Address, data: Uint8Array): Promise<Uint8Array> => {
  const { engine, state, block } = context;
  if (state.codeOf(to).length === 0) {
    return NOTHING;
  }
  const result = await engine.run(
    state,
    { caller: SYSTEM, to, value: 0n, data, gas: SYSTEM_GAS },
    { block, gasPrice: 0n, blobVersionedHashes: [], warmAddresses: [to, ...engine.precompiles], warmSlots: [] },
  );
  endTransaction(context, result.destroyed);
  return result.returnData;
};

/** The values of a block's header that the system calls at its start store. */
export interface BlockStart {
  readonly parentHash: Hash;
  readonly parentBeaconBlockRoot: Hash;
}

/** Calls the contracts of EIP-4788 and EIP-2935. */
export const beginBlock = async (
  context: ExecutionContext,
  { parentHash, parentBeaconBlockRoot }: BlockStart,
): Promise<void> => {
  const { engine } = context;
  if (engine.isActive(4788)) {
    await systemCall(context, BEACON_ROOTS, parseData(parentBeaconBlockRoot));
  }
  if (engine.isActive(2935)) {
    await systemCall(context, BLOCK_HASHES, parseData(parentHash));
  }
};

/** Writes the slots that the contracts of EIP-4788 and EIP-2935 write, without a call. Their state need not be fetched. */
export const presetBlock = (
  { engine, state, block }: ExecutionContext,
  { parentHash, parentBeaconBlockRoot }: BlockStart,
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
