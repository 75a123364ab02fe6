import { parentPort, workerData } from "node:worker_threads";
import { createEVM } from "@ethereumjs/evm";
import { SimpleStateManager } from "@ethereumjs/statemanager";
import { createAddressFromString } from "@ethereumjs/util";
import { type Address, parseData, ZERO_ADDRESS, ZERO_HASH } from "../../../src/ethereum/hex.ts";
import { EMPTY_CODE_HASH, keccak256Hex } from "../../../src/ethereum/keccak.ts";
import { BLOCK, engine, FREE, freeMessage, GAS, stockCommon } from "./evmSetup.ts";

/** Calls a contract in a fresh thread, and sends the time of each call, in microseconds. */
export interface FirstCallData {
  readonly isStock: boolean;
  readonly code: `0x${string}`;
  readonly data: `0x${string}`;
}

const CALLS = 1_000;
const AT: Address = `0x${"70".repeat(20)}`;
const { isStock, code, data } = workerData as FirstCallData;

const ours = () => {
  const bytes = parseData(code);
  const codeHash = keccak256Hex(bytes);
  const reader = {
    account: (address: Address) => ({ nonce: 1n, balance: 0n, codeHash: address === AT ? codeHash : EMPTY_CODE_HASH }),
    code: () => bytes,
    storage: () => Uint8Array.of(7),
    blockHash: () => ZERO_HASH,
  };
  return async () => {
    const context = { state: engine.createState(reader), block: BLOCK };
    return (await engine.transact(context, freeMessage(ZERO_ADDRESS, AT, data), FREE)).returnData;
  };
};

const stock = async () => {
  const stateManager = new SimpleStateManager();
  const evm = await createEVM({ common: stockCommon(), stateManager });
  const to = createAddressFromString(AT);
  await stateManager.putCode(to, parseData(code));
  return async () => (await evm.runCall({ to, data: parseData(data), gasLimit: GAS })).execResult.returnValue;
};

const call = isStock ? await stock() : ours();
const times: number[] = [];
for (let at = 0; at < CALLS; at++) {
  const start = performance.now();
  const output = await call();
  times.push((performance.now() - start) * 1_000);
  if (output.length !== 32) {
    throw new Error("the call failed");
  }
}
parentPort?.postMessage(times);
