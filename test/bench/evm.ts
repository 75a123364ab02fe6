import { join } from "node:path";
import { createBlock } from "@ethereumjs/block";
import { SimpleStateManager } from "@ethereumjs/statemanager";
import { createTxFromRLP } from "@ethereumjs/tx";
import { Account, createAddressFromString } from "@ethereumjs/util";
import { createVM, encodeReceipt as encodeStockReceipt, runTx } from "@ethereumjs/vm";
import { encodeFunctionData } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { bloomOfLogs } from "../../src/ethereum/bloom.ts";
import { type Address, parseData, ZERO_ADDRESS } from "../../src/ethereum/hex.ts";
import { parseTransaction } from "../../src/ethereum/parseTransaction.ts";
import { encodeReceipt } from "../../src/ethereum/receipt.ts";
import { DEPOSIT_TYPE, type SignedTransaction } from "../../src/ethereum/transaction.ts";
import { recoverSender } from "../../src/evm/senders/recoverAddress.ts";
import { messageOf } from "../../src/evm/transactionMessage.ts";
import { type Contract, compile } from "../support/builders/compile.ts";
import { measureLoops } from "./support/evmLoops.ts";
import { BLOCK, deployOurs, engine, FREE, find, freeMessage, GAS, stockCommon } from "./support/evmSetup.ts";
import { type BenchOptions, type BenchResult, median, round } from "./support/result.ts";
import { threadCpuMs } from "./support/threadCpu.ts";

const CLAIM = "Whole signed token transfers, from raw bytes to encoded receipt, against the stock library";
const GAS_PRICE = 1_000_000_000n;
const SENDERS = 50;
const RECIPIENTS = 700;
const ETHER = 10n ** 18n;

/** Measures CPU time of this thread. `withoutRecovery`: other threads recover the senders, and this one executes. */
export const bench = async ({ short }: BenchOptions): Promise<BenchResult> => {
  const contracts = compile(join(import.meta.dirname, "Loops.sol"), "prague");
  const rounds = short ? 1 : 5;
  const count = short ? 200 : 1_000;
  const transfers = await measureTransfers(contracts, count, rounds);
  const loops = await measureLoops(contracts, rounds);
  const keccak = loops.keccak4KiB ?? 0;
  return { claim: CLAIM, ...transfers, unit: "tx per second of CPU", ...loops, keccakRatio: keccak };
};

const accounts = Array.from({ length: SENDERS }, (_, at) =>
  privateKeyToAccount(`0x${(at + 1).toString(16).padStart(64, "0")}`),
);

const senderAt = (at: number): Address | undefined =>
  accounts[at % SENDERS]?.address.toLowerCase() as Address | undefined;

/** Creates the same state for both engines: the contract at one address, and senders with ether and tokens. */
const TOKEN: Address = `0x${"70".repeat(20)}`;

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
  const transfers = await signTransfers(token, count);
  const [ours, executed, stock]: [number[], number[], number[]] = [[], [], []];
  const gas = new Set<bigint>();
  const rateOf = ({ ms, gasUsed }: Timed): number => {
    gas.add(gasUsed);
    return (count / ms) * 1_000;
  };
  for (let at = 0; at < rounds; at++) {
    ours.push(rateOf(await runOurs(token, transfers, recoverSender)));
    executed.push(rateOf(await runOurs(token, transfers, (_, at) => senderAt(at))));
    stock.push(rateOf(await runStock(token, transfers)));
  }
  if (gas.size !== 1) {
    throw new Error(`the engines used different gas: ${[...gas].join(" ")}`);
  }
  const [whole, alone, slow] = [median(ours), median(executed), median(stock)];
  return {
    ratio: round(whole / slow, 2),
    ours: round(whole, 0),
    yardstick: round(slow, 0),
    withoutRecovery: round(alone / slow, 2),
    oursWithoutRecovery: round(alone, 0),
  };
};

interface Timed {
  readonly ms: number;
  readonly gasUsed: bigint;
}

type SenderOf = (transaction: SignedTransaction, at: number) => Address | undefined;

const runOurs = async (token: Contract, raws: readonly Uint8Array[], senderOf: SenderOf): Promise<Timed> => {
  const { state, at } = await deployOurs(token.bytecode);
  state.setCode(TOKEN, state.codeOf(at));
  for (const { address } of accounts) {
    const sender = address.toLowerCase() as Address;
    const mint = encodeFunctionData({ abi: token.abi, functionName: "mint", args: [address, ETHER] });
    await engine.transact({ state, block: BLOCK }, freeMessage(ZERO_ADDRESS, TOKEN, mint), FREE);
    state.setAccount(sender, 0n, ETHER);
  }
  state.endTransaction(false);
  const start = threadCpuMs();
  let gasUsed = 0n;
  for (const [position, raw] of raws.entries()) {
    const transaction = parseTransaction(raw);
    if (transaction.type === DEPOSIT_TYPE) {
      throw new Error("a deposit");
    }
    const sender = senderOf(transaction, position);
    if (sender === undefined) {
      throw new Error("no sender");
    }
    const result = await engine.transact({ state, block: BLOCK }, messageOf(transaction, sender));
    gasUsed += result.gasUsed;
    const { logs } = result;
    encodeReceipt({ type: 2, status: true, cumulativeGasUsed: gasUsed, logs, logsBloom: bloomOfLogs(logs) });
  }
  return { ms: threadCpuMs() - start, gasUsed };
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
  const start = threadCpuMs();
  let gasUsed = 0n;
  for (const raw of raws) {
    const tx = createTxFromRLP(raw, { common });
    const result = await runTx(vm, { tx, block, skipBlockGasLimitValidation: true });
    gasUsed += result.totalGasSpent;
    encodeStockReceipt(result.receipt, 2);
  }
  return { ms: threadCpuMs() - start, gasUsed };
};
