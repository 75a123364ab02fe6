import { type Address, formatQuantity, type Hash } from "../../../src/ethereum/hex.ts";
import { BEACON_ROOTS, BLOCK_HASHES } from "../../../src/ethereum/systemContracts.ts";
import { RING_SLOTS } from "../../../src/evm/systemCalls.ts";
import { pick } from "../../support/builders/randomValues.ts";
import {
  LEFT_OUT_SLOTS,
  leftOutAccounts,
  SLOTS,
  STAND_IN_ACCOUNTS,
  STAND_IN_STORAGES,
  STAND_IN_SYSTEM,
} from "../state/randomStateBlocks.ts";
import type { StandInChain } from "../state/standInChain.ts";
import { type StateValuesReader, wordOf } from "../state/stateKeys.ts";
import type { ReadKind } from "./comparedReads.ts";

/** A read of one state value, without its block. */
interface StateReadCall {
  readonly method: "eth_getBalance" | "eth_getTransactionCount" | "eth_getCode" | "eth_getStorageAt";
  readonly params: readonly [Address] | readonly [Address, Hash];
}

const QUEUE_SLOTS = 4;

/** The slots that blocks up to this number write in a system contract. */
const systemSlot = (random: () => number, contract: Address, height: number): Hash => {
  const back = BigInt(Math.floor(random() * 8));
  switch (contract) {
    case BLOCK_HASHES:
      return wordOf((BigInt(height) - back) % RING_SLOTS);
    case BEACON_ROOTS:
      return wordOf((1_700_000_000n + 2n * (BigInt(height) - back)) % RING_SLOTS);
    default:
      return wordOf(BigInt(Math.floor(random() * QUEUE_SLOTS)));
  }
};

/** Creates a random read of an account that a block around this number may create. It is empty before that. */
const leftOutRead = (random: () => number, height: number): StateReadCall => {
  const [created, funded] = leftOutAccounts(height + 3 - Math.floor(random() * 8));
  const slot = wordOf(BigInt(Math.floor(random() * LEFT_OUT_SLOTS)));
  const reads: readonly StateReadCall[] = [
    { method: "eth_getBalance", params: [created] },
    { method: "eth_getBalance", params: [funded] },
    { method: "eth_getTransactionCount", params: [created] },
    { method: "eth_getCode", params: [created] },
    { method: "eth_getStorageAt", params: [created, slot] },
  ];
  return pick(random, reads);
};

/** Creates a random read of an account or a slot that stand-in blocks write. */
const randomStateRead = (random: () => number, height: number): StateReadCall => {
  if (random() < 0.2) {
    return leftOutRead(random, height);
  }
  const chance = random();
  if (chance < 0.3) {
    return { method: "eth_getBalance", params: [pick(random, STAND_IN_ACCOUNTS)] };
  }
  if (chance < 0.45) {
    return { method: "eth_getTransactionCount", params: [pick(random, STAND_IN_ACCOUNTS)] };
  }
  if (chance < 0.6) {
    return { method: "eth_getCode", params: [pick(random, STAND_IN_ACCOUNTS)] };
  }
  if (chance < 0.65) {
    const contract = pick(random, STAND_IN_SYSTEM);
    return { method: "eth_getStorageAt", params: [contract, systemSlot(random, contract, height)] };
  }
  const slot = wordOf(BigInt(Math.floor(random() * SLOTS)));
  return { method: "eth_getStorageAt", params: [pick(random, STAND_IN_STORAGES), slot] };
};

/** Returns the result of a read in a state, as a node formats it. */
const expectedResult = ({ method, params }: StateReadCall, state: StateValuesReader): string => {
  const [address, slot = wordOf(0n)] = params;
  switch (method) {
    case "eth_getBalance":
      return formatQuantity(state.balance(address));
    case "eth_getTransactionCount":
      return formatQuantity(state.nonce(address));
    case "eth_getCode":
      return state.code(address);
    case "eth_getStorageAt":
      return state.slot(address, slot);
  }
};

/** Random reads of the state of a stand-in chain. */
export const createStateReads = (chain: StandInChain): ReadKind<StateReadCall> => ({
  ...{ batch: 12, latestShare: 0.7, maxDepth: 250, skipsAboveHead: false },
  draw: randomStateRead,
  callAt: ({ method, params }, tag) => ({ method, params: [...params, tag] }),
  expected: (read, hash) => expectedResult(read, chain.stateAt(hash)),
});
