import { type Address, formatWord, type Hash, parseData } from "../ethereum/hex.ts";
import { numberBytes, stripZeros } from "../ethereum/rlp.ts";
import { BEACON_ROOTS, BLOCK_HASHES } from "../ethereum/systemContracts.ts";
import type { ActiveRules, ExecutionContext } from "./engine.ts";

export const SYSTEM: Address = "0xfffffffffffffffffffffffffffffffffffffffe";
/** The gas of a system call (EIP-4788). */
export const SYSTEM_GAS = 30_000_000n;
/** Blocks that the ring buffer of either contract holds: EIP-4788, EIP-2935. */
export const RING_SLOTS = 8_191n;

/** The values of a block's header that the system calls at its start store. */
export interface BlockStart {
  readonly parentHash: Hash;
  readonly parentBeaconBlockRoot: Hash;
}

/** A call of the system account: the contract and its input. */
export type SystemCall = readonly [to: Address, data: Uint8Array];

/** Returns the calls at a block's start: those of EIP-4788 and EIP-2935. */
export const startCalls = (
  rules: Pick<ActiveRules, "isActive">,
  { parentHash, parentBeaconBlockRoot }: BlockStart,
): readonly SystemCall[] => [
  ...(rules.isActive(4788) ? [[BEACON_ROOTS, parseData(parentBeaconBlockRoot)] as const] : []),
  ...(rules.isActive(2935) ? [[BLOCK_HASHES, parseData(parentHash)] as const] : []),
];

/** Writes the slots that the contracts of EIP-4788 and EIP-2935 write, without a call. Their state need not be fetched. */
export const writeStartSlots = (
  { engine, state, block }: ExecutionContext,
  { parentHash, parentBeaconBlockRoot }: BlockStart,
): void => {
  if (engine.isActive(4788)) {
    const slot = block.timestamp % RING_SLOTS;
    state.presetStorage(BEACON_ROOTS, formatWord(slot), numberBytes(block.timestamp));
    state.presetStorage(BEACON_ROOTS, formatWord(slot + RING_SLOTS), stripZeros(parseData(parentBeaconBlockRoot)));
  }
  if (engine.isActive(2935)) {
    state.presetStorage(BLOCK_HASHES, formatWord((block.number - 1n) % RING_SLOTS), stripZeros(parseData(parentHash)));
  }
};
