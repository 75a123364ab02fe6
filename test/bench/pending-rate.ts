import { createBlock } from "@ethereumjs/block";
import { Common, Hardfork, Mainnet } from "@ethereumjs/common";
import { Caches, MerkleStateManager } from "@ethereumjs/statemanager";
import { createTxFromRLP } from "@ethereumjs/tx";
import { Account, createAddressFromString } from "@ethereumjs/util";
import { createVM, runTx } from "@ethereumjs/vm";
import { type Address, encodeDeployData, encodeFunctionData, getContractAddress, type Hex } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import type { StateKeys, StateValues } from "../../src/core/stateReader.ts";
import type { PendingEnvironment } from "../../src/core/view.ts";
import { bloomOfLogs, createBloom, orBloom } from "../../src/ethereum/bloom.ts";
import { formatData, formatQuantity, type Hash, parseData, ZERO_HASH } from "../../src/ethereum/hex.ts";
import { EMPTY_CODE_HASH } from "../../src/ethereum/keccak.ts";
import { orderedTrieRoot } from "../../src/ethereum/orderedTrie.ts";
import { encodeReceipt, type Receipt } from "../../src/ethereum/receipt.ts";
import type { Rules } from "../../src/ethereum/rules.ts";
import { createEngines } from "../../src/evm/createEngines.ts";
import type { ExecutableMessage } from "../../src/pending/executableMessage.ts";
import { TOKEN_ABI, TOKEN_BYTECODE } from "../devnet/token.ts";
import { createMessageRunner } from "../support/builders/messageRunner.ts";
import { type BenchOptions, type BenchResult, MAX_SPREAD, median, round } from "./support/result.ts";
import { threadCpuMs } from "./support/threadCpu.ts";

const CHAIN_ID = 901;
const SENDERS = 50;
const RECIPIENTS = 700;
const MESSAGES_A_BLOCK = 10;
const TRANSACTIONS_A_MESSAGE = 20;
const BASE_FEE = 1_000_000_000n;
const ETHER = 10n ** 18n;
const RULES: Rules = { chainId: BigInt(CHAIN_ID), fork: "prague" };

const accounts = Array.from({ length: SENDERS }, (_, at) =>
  privateKeyToAccount(`0x${(at + 1).toString(16).padStart(64, "0")}`),
);
const lower = (address: string): Address => `0x${address.slice(2).toLowerCase()}`;
const rich = new Set(accounts.map(({ address }) => lower(address)));

interface Message {
  readonly raws: readonly Hex[];
  expected: ExecutableMessage["expected"];
}
interface Block {
  readonly environment: PendingEnvironment;
  readonly messages: readonly Message[];
}

const environmentOf = (number: number): PendingEnvironment => ({
  number: BigInt(number),
  timestamp: 1_700_000_000n + BigInt(number) * 2n,
  gasLimit: 400_000_000n,
  baseFeePerGas: BASE_FEE,
  feeRecipient: "0x4200000000000000000000000000000000000011",
  prevRandao: ZERO_HASH,
  parentHash: `0x${number.toString(16).padStart(64, "0")}`,
  parentBeaconBlockRoot: ZERO_HASH,
  extraData: "0x",
});

/** Creates transactions: six of ten are token transfers, others transfer ether or write storage. The first creates the token. */
const makeBlocks = async (count: number): Promise<Block[]> => {
  const [deployer] = accounts;
  if (!deployer) {
    throw new Error("no accounts");
  }
  const token = getContractAddress({ from: deployer.address, nonce: 0n });
  const nonces = accounts.map(() => 0);
  const sign = (at: number, transaction: { to?: Address; data?: Hex; value?: bigint; gas: bigint }): Promise<Hex> => {
    const account = accounts[at] ?? deployer;
    const nonce = nonces[at] ?? 0;
    nonces[at] = nonce + 1;
    const fees = { maxFeePerGas: 2n * BASE_FEE, maxPriorityFeePerGas: 1n };
    return account.signTransaction({ type: "eip1559", chainId: CHAIN_ID, nonce, ...fees, ...transaction });
  };
  const owners = accounts.map(({ address }) => address);
  const creation = encodeDeployData({ abi: TOKEN_ABI, bytecode: TOKEN_BYTECODE, args: [owners, ETHER] });
  const call = (at: number, functionName: "transfer" | "store", args: readonly [Address & bigint, bigint]) =>
    sign(at, { to: token, gas: 200_000n, data: encodeFunctionData({ abi: TOKEN_ABI, functionName, args } as never) });
  const one = (at: number): Promise<Hex> => {
    const sender = at % SENDERS;
    const to = `0x${(0xba51n * 2n ** 128n + BigInt((at * 31) % RECIPIENTS)).toString(16).padStart(40, "0")}` as Address;
    if (at % 10 < 6) {
      return call(sender, "transfer", [to as never, 5n]);
    }
    if (at % 10 < 8) {
      return sign(sender, { to, value: 1n, gas: 21_000n });
    }
    return call(sender, "store", [BigInt(at) as never, BigInt(at)]);
  };
  const blocks: Block[] = [];
  let at = 0;
  for (let number = 1; number <= count; number++) {
    const messages: Message[] = [];
    for (let index = 0; index < MESSAGES_A_BLOCK; index++) {
      const raws = number === 1 && index === 0 ? [await sign(0, { data: creation, gas: 5_000_000n })] : [];
      while (raws.length < TRANSACTIONS_A_MESSAGE) {
        raws.push(await one(at++));
      }
      messages.push({ raws, expected: { gasUsed: 0n, logsBloom: "0x", receiptsRoot: ZERO_HASH } });
    }
    blocks.push({ environment: environmentOf(number), messages });
  }
  return blocks;
};

interface Timed {
  readonly seconds: number;
  readonly gas: bigint;
}

/** Executes with the library alone, and creates the fields of each message. */
const runYardstick = async (blocks: readonly Block[], blockField: boolean): Promise<Timed> => {
  const common = new Common({ chain: { ...Mainnet, chainId: CHAIN_ID }, hardfork: Hardfork.Prague });
  const stateManager = new MerkleStateManager({ common, caches: new Caches() });
  for (const address of rich) {
    await stateManager.putAccount(createAddressFromString(address), new Account(0n, 1_000n * ETHER));
  }
  const vm = await createVM({ common, stateManager });
  let gas = 0n;
  const startCpuMs = threadCpuMs();
  for (const { environment, messages } of blocks) {
    const { number, timestamp, gasLimit, baseFeePerGas, feeRecipient } = environment;
    const header = { number, timestamp, gasLimit, baseFeePerGas, coinbase: feeRecipient };
    const block = createBlock({ header }, { common, skipConsensusFormatValidation: true });
    const receipts: Receipt[] = [];
    for (const message of messages) {
      for (const raw of message.raws) {
        const tx = createTxFromRLP(parseData(raw), { common });
        const result = await runTx(vm, { tx, block, blockGasUsed: receipts.at(-1)?.cumulativeGasUsed ?? 0n });
        const logs = result.receipt.logs.map(([address, topics, data]) => ({
          address: formatData(address),
          topics: topics.map(formatData),
          data: formatData(data),
        }));
        receipts.push({
          type: 2,
          status: result.execResult.exceptionError === undefined,
          cumulativeGasUsed: result.receipt.cumulativeBlockGasUsed,
          logs,
          logsBloom: bloomOfLogs(logs),
        });
      }
      if (blockField) {
        message.expected = expectedOf(receipts);
      }
    }
    gas += receipts.at(-1)?.cumulativeGasUsed ?? 0n;
  }
  return { seconds: (threadCpuMs() - startCpuMs) / 1_000, gas };
};

const expectedOf = (receipts: readonly Receipt[]): ExecutableMessage["expected"] => {
  const bloom = createBloom();
  for (const { logsBloom } of receipts) {
    orBloom(bloom, logsBloom);
  }
  return {
    gasUsed: receipts.at(-1)?.cumulativeGasUsed ?? 0n,
    logsBloom: formatData(bloom),
    receiptsRoot: orderedTrieRoot(receipts.map(encodeReceipt)),
  };
};

const genesis = (_: unknown, { accounts: asked, slots, blockHashes }: StateKeys): Promise<StateValues> =>
  Promise.resolve({
    accounts: asked.map((address) => [
      address,
      rich.has(address) ? { nonce: 0n, balance: 1_000n * ETHER, codeHash: EMPTY_CODE_HASH } : undefined,
    ]),
    codes: [],
    slots: slots.map(([address, slot]) => [address, slot, new Uint8Array(0)]),
    blockHashes: blockHashes.map((number) => [number, ZERO_HASH]),
  });

/** The work of the executor's thread: from raw bytes to verified receipts and changes, for all blocks in order. */
const runOurs = async (blocks: readonly Block[]): Promise<Timed> => {
  const base = { number: 0n, hash: ZERO_HASH };
  const runner = createMessageRunner({ fetch: genesis, engine: await createEngines() }, base);
  let id = 0;
  let gas = 0n;
  const startCpuMs = threadCpuMs();
  for (const { environment, messages } of blocks) {
    for (const [index, { raws, expected }] of messages.entries()) {
      const before = id === 0 ? undefined : id;
      const job = {
        id: ++id,
        before,
        environment,
        index,
        transactions: raws,
        accessList: [],
        expected,
      };
      const { unverified } = await runner.run(job, RULES);
      if (unverified) {
        throw new Error(`message ${environment.number}-${index} was not reproduced: ${unverified}`);
      }
    }
    gas += messages.at(-1)?.expected.gasUsed ?? 0n;
    runner.rebase({ number: environment.number, hash: formatHash(environment.number) }, id);
  }
  return { seconds: (threadCpuMs() - startCpuMs) / 1_000, gas };
};

const formatHash = (number: bigint): Hash => `0x${formatQuantity(number).slice(2).padStart(64, "0")}`;

/** Measures executed transactions a second, compared with the library alone. */
export const bench = async ({ short }: BenchOptions): Promise<BenchResult> => {
  const blocks = await makeBlocks(short ? 3 : 10);
  const count = blocks.length * MESSAGES_A_BLOCK * TRANSACTIONS_A_MESSAGE;
  const { gas } = await runYardstick(blocks, true);
  await runOurs(blocks);
  const ours: number[] = [];
  const yardstick: number[] = [];
  for (let at = 0; at < (short ? 2 : 5); at++) {
    ours.push(count / (await runOurs(blocks)).seconds);
    yardstick.push(count / (await runYardstick(blocks, false)).seconds);
  }
  const [mine, theirs] = [median(ours), median(yardstick)];
  const megagas = Number(gas) / 1e6 / count;
  return {
    claim: "pre-confirmed transactions are executed at least nine times as fast as by vm.runTx with its caches",
    ratio: round(mine / theirs),
    ours: round(mine, 0),
    yardstick: round(theirs, 0),
    unit: "transactions per second of the thread's CPU, from raw bytes to verified receipts",
    unreadable: Math.max(...yardstick) / Math.min(...yardstick) - 1 > MAX_SPREAD,
    oursMegagasPerSecond: round(mine * megagas),
    yardstickMegagasPerSecond: round(theirs * megagas),
    transactions: count,
  };
};
