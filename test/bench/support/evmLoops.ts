import { createEVM } from "@ethereumjs/evm";
import { SimpleStateManager } from "@ethereumjs/statemanager";
import { encodeFunctionData } from "viem";
import { parseData, ZERO_ADDRESS } from "../../../src/ethereum/hex.ts";
import type { Contract } from "../../support/builders/compile.ts";
import { BLOCK, deployOurs, engine, FREE, find, freeMessage, GAS, stockCommon } from "./evmSetup.ts";
import { median, round } from "./result.ts";
import { threadCpuMs } from "./threadCpu.ts";

const LOOPS = [
  ["erc20Internal", "transfers", 1_500n],
  ["erc20Call", "calls", 800n],
  ["keccak4KiB", "hashes", 400n],
  ["storage", "storage_", 2_500n],
  ["arithmetic", "numbers", 8_000n],
] as const;

/** Ratios of gas a second, by name. */
export const measureLoops = async (
  contracts: ReadonlyMap<string, Contract>,
  rounds: number,
): Promise<Record<string, number>> => {
  const loops = find(contracts, "Loops");
  const { state, at } = await deployOurs(loops.bytecode);
  const stateManager = new SimpleStateManager();
  const evm = await createEVM({ common: stockCommon(), stateManager });
  const { createdAddress } = await evm.runCall({ data: parseData(loops.bytecode), gasLimit: GAS });
  if (createdAddress === undefined) {
    throw new Error("not deployed");
  }
  const measured: Record<string, number> = {};
  for (const [name, functionName, times] of LOOPS) {
    const data = encodeFunctionData({ abi: loops.abi, functionName, args: [times] });
    const ours: number[] = [];
    const stock: number[] = [];
    for (let run = 0; run < rounds; run++) {
      let start = threadCpuMs();
      const mine = await engine.transact({ state, block: BLOCK }, freeMessage(ZERO_ADDRESS, at, data), FREE);
      if (mine.status !== "success") {
        throw new Error(`${name}: ${mine.halt}`);
      }
      ours.push(Number(mine.gasUsed) / (threadCpuMs() - start) / 1_000);
      start = threadCpuMs();
      evm.journal.addAlwaysWarmAddress(createdAddress.toString());
      const { execResult } = await evm.runCall({ to: createdAddress, data: parseData(data), gasLimit: GAS });
      if (execResult.exceptionError !== undefined) {
        throw new Error(`${name}: ${execResult.exceptionError.error}`);
      }
      stock.push(Number(execResult.executionGasUsed) / (threadCpuMs() - start) / 1_000);
      evm.journal.cleanJournal();
      stateManager.originalStorageCache.clear();
    }
    measured[`${name}Mgas`] = round(median(ours), 2);
    measured[`${name}StockMgas`] = round(median(stock), 2);
    measured[name] = round(median(ours) / median(stock), 2);
  }
  return measured;
};
