import { Common, Mainnet } from "@ethereumjs/common";
import type { Hex } from "viem";
import { fixedForks } from "../../../src/ethereum/chainForks.ts";
import { type Address, parseData, ZERO_ADDRESS, ZERO_HASH } from "../../../src/ethereum/hex.ts";
import { rulesAt } from "../../../src/ethereum/rules.ts";
import { createEngines } from "../../../src/evm/createEngines.ts";
import type { BlockEnvironment } from "../../../src/evm/engine.ts";
import type { ExecutionState } from "../../../src/evm/executionState.ts";
import type { TransactionMessage } from "../../../src/evm/transactionMessage.ts";
import type { Contract } from "../../support/builders/compile.ts";
import { createMessage } from "../../support/builders/plainCall.ts";

export const GAS = 10_000_000n;

export const BLOCK: BlockEnvironment = {
  number: 1n,
  timestamp: 1_700_000_000n,
  coinbase: `0x${"c0".repeat(20)}`,
  gasLimit: 1_000_000_000n,
  baseFee: 7n,
  prevRandao: ZERO_HASH,
  blobBaseFee: 1n,
  blockHash: () => ZERO_HASH,
};

export const find = (contracts: ReadonlyMap<string, Contract>, name: string): Contract => {
  const contract = contracts.get(name);
  if (contract === undefined) {
    throw new Error(`no contract ${name}`);
  }
  return contract;
};

export const freeMessage = (from: Address, to: Address | null, data: Hex): TransactionMessage =>
  createMessage({ from, to, gas: GAS, input: parseData(data) });
export const FREE = { checks: { nonce: false, sender: false, freeGas: true } };

export const engine = (await createEngines())(rulesAt(fixedForks(1n, "prague"), 1n, 1n));

/** Creates a state over an empty one. */
const emptyState = () =>
  engine.createState({
    account: () => undefined,
    code: () => new Uint8Array(0),
    storage: () => new Uint8Array(0),
    blockHash: () => ZERO_HASH,
  });

export const deployOurs = async (bytecode: Hex): Promise<{ state: ExecutionState; at: Address }> => {
  const state = emptyState();
  const result = await engine.transact({ state, block: BLOCK }, freeMessage(ZERO_ADDRESS, null, bytecode), FREE);
  if (result.created === undefined) {
    throw new Error(`not deployed: ${result.halt}`);
  }
  return { state, at: result.created };
};

export const stockCommon = () => new Common({ chain: Mainnet, hardfork: "prague" });
