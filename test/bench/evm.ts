import { join } from "node:path";
import { createBlock } from "@ethereumjs/block";
import { Common, Mainnet } from "@ethereumjs/common";
import { createEVM } from "@ethereumjs/evm";
import { SimpleStateManager } from "@ethereumjs/statemanager";
import { createTxFromRLP } from "@ethereumjs/tx";
import { Account, createAddressFromString } from "@ethereumjs/util";
import { createVM, encodeReceipt as encodeStockReceipt, runTx } from "@ethereumjs/vm";
import { encodeFunctionData, type Hex } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { bloomOfLogs } from "../../src/ethereum/bloom.ts";
import { fixedForks } from "../../src/ethereum/ethereumForks.ts";
import { type Address, parseData, ZERO_ADDRESS, ZERO_HASH } from "../../src/ethereum/hex.ts";
import { parseTransaction } from "../../src/ethereum/parseTransaction.ts";
import { encodeReceipt } from "../../src/ethereum/receipt.ts";
import { rulesAt } from "../../src/ethereum/rules.ts";
import { createEngines } from "../../src/evm/createEngines.ts";
import type { BlockEnvironment } from "../../src/evm/engine.ts";
import type { ExecutionState } from "../../src/evm/executionState.ts";
import { recoverSender } from "../../src/evm/recoverAddress.ts";
import { messageOf, type TransactionMessage } from "../../src/evm/transactionMessage.ts";
import { type Contract, compile } from "../support/builders/compile.ts";

const CLAIM = "Whole signed token transfers, from raw bytes to encoded receipt, against the stock library";
const GAS_PRICE = 1_000_000_000n;
const GAS = 10_000_000n;
const SENDERS = 50;
const RECIPIENTS = 700;
const ETHER = 10n ** 18n;

const BLOCK: BlockEnvironment = {
  number: 1n,
  timestamp: 1_700_000_000n,
  coinbase: `0x${"c0".repeat(20)}`,
  gasLimit: 1_000_000_000n,
  baseFee: 7n,
  prevRandao: ZERO_HASH,
  blobBaseFee: 1n,
  blockHash: () => ZERO_HASH,
};

const LOOPS = [
  ["erc20Internal", "transfers", 1_500n],
  ["erc20Call", "calls", 800n],
  ["keccak4KiB", "hashes", 400n],
  ["storage", "storage_", 2_500n],
  ["arithmetic", "numbers", 8_000n],
] as const;

export const bench = async ({ short }: { readonly short: boolean }) => {
  const contracts = compile(join(import.meta.dirname, "Loops.sol"), "prague");
  const rounds = short ? 1 : 5;
  const count = short ? 200 : 1_000;
  const transfers = await measureTransfers(contracts, count, rounds);
  const loops = await measureLoops(contracts, rounds);
  const keccak = loops.keccak4KiB ?? 0;
  return { claim: CLAIM, ...transfers, unit: "tx/s", ...loops, keccakRatio: keccak };
};

const median = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[values.length >> 1] ?? 0;
const round = (value: number): number => Number(value.toFixed(2));

const find = (contracts: ReadonlyMap<string, Contract>, name: string): Contract => {
  const contract = contracts.get(name);
  if (contract === undefined) {
    throw new Error(`no contract ${name}`);
  }
  return contract;
};

const accounts = Array.from({ length: SENDERS }, (_, at) =>
  privateKeyToAccount(`0x${(at + 1).toString(16).padStart(64, "0")}`),
);

/** Creates the same state for both engines: the contract at one address, and senders with ether and tokens. */
const TOKEN: Address = `0x${"70".repeat(20)}`;

const freeMessage = (from: Address, to: Address | null, data: Hex): TransactionMessage => ({
  type: 2,
  from,
  to,
  nonce: 0n,
  gas: GAS,
  value: 0n,
  input: parseData(data),
  maxFeePerGas: 0n,
  maxPriorityFeePerGas: 0n,
  accessList: [],
  maxFeePerBlobGas: 0n,
  blobVersionedHashes: [],
  authorizationList: [],
});
const FREE = { checks: { nonce: false, sender: false, freeGas: true } };

const engine = (await createEngines())(rulesAt(fixedForks(1n, "prague"), 1n, 1n));

/** Creates a state over an empty one. */
const emptyState = () =>
  engine.createState({
    account: () => undefined,
    code: () => new Uint8Array(0),
    storage: () => new Uint8Array(0),
    blockHash: () => ZERO_HASH,
  });

const deployOurs = async (bytecode: Hex): Promise<{ state: ExecutionState; at: Address }> => {
  const state = emptyState();
  const result = await engine.transact({ state, block: BLOCK }, freeMessage(ZERO_ADDRESS, null, bytecode), FREE);
  if (result.created === undefined) {
    throw new Error(`not deployed: ${result.halt}`);
  }
  return { state, at: result.created };
};

const stockCommon = () => new Common({ chain: Mainnet, hardfork: "prague" });

const signTransfers = (token: Contract, count: number): Promise<Uint8Array[]> =>
  Promise.all(
    Array.from({ length: count }, async (_, at) => {
      const account = accounts[at % SENDERS];
      if (account === undefined) {
        throw new Error("no account");
      }
      const to = `0x${(0x1000 + (at % RECIPIENTS)).toString(16).padStart(40, "0")}` as const;
      const raw = await account.signTransaction({
        type: "eip1559",
        chainId: 1,
        nonce: Math.floor(at / SENDERS),
        to: TOKEN,
        gas: 100_000n,
        maxFeePerGas: GAS_PRICE,
        maxPriorityFeePerGas: 1n,
        data: encodeFunctionData({ abi: token.abi, functionName: "transfer", args: [to, 1n] }),
      });
      return parseData(raw);
    }),
  );

const measureTransfers = async (contracts: ReadonlyMap<string, Contract>, count: number, rounds: number) => {
  const token = find(contracts, "Token");
  const raws = await signTransfers(token, count);
  const ours: number[] = [];
  const stock: number[] = [];
  const gas = new Set<bigint>();
  for (let at = 0; at < rounds; at++) {
    const [mine, theirs] = [await runOurs(token, raws), await runStock(token, raws)];
    gas.add(mine.gasUsed).add(theirs.gasUsed);
    ours.push((count / mine.ms) * 1_000);
    stock.push((count / theirs.ms) * 1_000);
  }
  if (gas.size !== 1) {
    throw new Error(`the engines used different gas: ${[...gas].join(" ")}`);
  }
  const [fast, slow] = [median(ours), median(stock)];
  return { ratio: round(fast / slow), ours: round(fast), yardstick: round(slow) };
};

interface Timed {
  readonly ms: number;
  readonly gasUsed: bigint;
}

const runOurs = async (token: Contract, raws: readonly Uint8Array[]): Promise<Timed> => {
  const { state, at } = await deployOurs(token.bytecode);
  state.setCode(TOKEN, state.codeOf(at));
  for (const { address } of accounts) {
    const sender = address.toLowerCase() as Address;
    const mint = encodeFunctionData({ abi: token.abi, functionName: "mint", args: [address, ETHER] });
    await engine.transact({ state, block: BLOCK }, freeMessage(ZERO_ADDRESS, TOKEN, mint), FREE);
    state.setAccount(sender, 0n, ETHER);
  }
  state.endTransaction(false);
  const start = performance.now();
  let gasUsed = 0n;
  for (const raw of raws) {
    const transaction = parseTransaction(raw);
    if (transaction.type === 0x7e) {
      throw new Error("a deposit");
    }
    const sender = recoverSender(transaction);
    if (sender === undefined) {
      throw new Error("no sender");
    }
    const result = await engine.transact({ state, block: BLOCK }, messageOf(transaction, sender));
    gasUsed += result.gasUsed;
    const { logs } = result;
    encodeReceipt({ type: 2, status: true, cumulativeGasUsed: gasUsed, logs, logsBloom: bloomOfLogs(logs) });
  }
  return { ms: performance.now() - start, gasUsed };
};

const runStock = async (token: Contract, raws: readonly Uint8Array[]): Promise<Timed> => {
  const common = stockCommon();
  const stateManager = new SimpleStateManager();
  const vm = await createVM({ common, stateManager });
  const { execResult } = await vm.evm.runCall({ data: parseData(token.bytecode), gasLimit: GAS });
  await stateManager.putCode(createAddressFromString(TOKEN), execResult.returnValue);
  for (const { address } of accounts) {
    const mint = encodeFunctionData({ abi: token.abi, functionName: "mint", args: [address, ETHER] });
    await vm.evm.runCall({ to: createAddressFromString(TOKEN), data: parseData(mint), gasLimit: GAS });
    await stateManager.putAccount(createAddressFromString(address), new Account(0n, ETHER));
  }
  stateManager.originalStorageCache.clear();
  await vm.evm.journal.cleanup();
  const header = { number: 1n, timestamp: BLOCK.timestamp, gasLimit: BLOCK.gasLimit, baseFeePerGas: BLOCK.baseFee };
  const block = createBlock(
    { header: { ...header, coinbase: BLOCK.coinbase } },
    { common, skipConsensusFormatValidation: true },
  );
  const start = performance.now();
  let gasUsed = 0n;
  for (const raw of raws) {
    const tx = createTxFromRLP(raw, { common });
    const result = await runTx(vm, { tx, block, skipBlockGasLimitValidation: true });
    gasUsed += result.totalGasSpent;
    encodeStockReceipt(result.receipt, 2);
  }
  return { ms: performance.now() - start, gasUsed };
};

/** Ratios of gas a second, by name. */
const measureLoops = async (
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
      let start = performance.now();
      const mine = await engine.transact({ state, block: BLOCK }, freeMessage(ZERO_ADDRESS, at, data), FREE);
      if (mine.status !== "success") {
        throw new Error(`${name}: ${mine.halt}`);
      }
      ours.push(Number(mine.gasUsed) / (performance.now() - start) / 1_000);
      start = performance.now();
      evm.journal.addAlwaysWarmAddress(createdAddress.toString());
      const { execResult } = await evm.runCall({ to: createdAddress, data: parseData(data), gasLimit: GAS });
      if (execResult.exceptionError !== undefined) {
        throw new Error(`${name}: ${execResult.exceptionError.error}`);
      }
      stock.push(Number(execResult.executionGasUsed) / (performance.now() - start) / 1_000);
      evm.journal.cleanJournal();
      stateManager.originalStorageCache.clear();
    }
    measured[`${name}Mgas`] = round(median(ours));
    measured[`${name}StockMgas`] = round(median(stock));
    measured[name] = round(median(ours) / median(stock));
  }
  return measured;
};
