import { hashHeader } from "../../src/ethereum/blockHeader.ts";
import { bloomOfLogs, createBloom } from "../../src/ethereum/bloom.ts";
import { type Address, formatData, type Hash, type Hex } from "../../src/ethereum/hex.ts";
import { orderedTrieRoot } from "../../src/ethereum/orderedTrie.ts";
import { parseTransaction } from "../../src/ethereum/parseTransaction.ts";
import { encodeReceipt, type Receipt } from "../../src/ethereum/receipt.ts";
import { DEPOSIT_TYPE, type Transaction } from "../../src/ethereum/transaction.ts";
import { type Anvil, AnvilError } from "./anvil.ts";
import {
  type Flashblock,
  type FlashblockBase,
  type FlashblockDiff,
  formatMetadata,
  type MetadataGeneration,
} from "./flashblock.ts";
import { formatCall } from "./formatCall.ts";
import { encodeL1Attributes, L1_ATTRIBUTES_SENDER, L1_BLOCK } from "./l1Attributes.ts";
import type { HeldTransaction } from "./mempool.ts";
import { accountsOf, type CallFrame, headerOf, logsOf, type NodeBlock } from "./nodeBlock.ts";

export interface JobOptions {
  readonly payloadId: Hex;
  readonly timestamp: bigint;
  readonly deposits: boolean;
  readonly generation: MetadataGeneration;
}

/** A block under construction: its transactions on the node, and its messages in the feed. */
export interface BlockJob {
  readonly number: bigint;
  readonly timestamp: bigint;
  /** Number of messages. */
  readonly length: number;
  readonly included: readonly Transaction[];
  /** The transactions that clients sent. */
  readonly handed: readonly HeldTransaction[];
  readonly gasLeft: bigint;
  /** Sends these transactions to the node in order, within `budgetMs`, and builds the next message. */
  next(held: readonly HeldTransaction[], previous: string, budgetMs: number): Promise<Step>;
}

export interface Step {
  readonly message: Flashblock;
  /** The transactions for which there was no time. */
  readonly left: readonly HeldTransaction[];
}

const DEPOSIT_RECEIPT_VERSION = 1n;

const pendingBlock = async (anvil: Anvil): Promise<NodeBlock> =>
  (await anvil.call("eth_getBlockByNumber", "pending", false)) as NodeBlock;

/** Starts the next block after the node's newest one. */
export const startJob = async (anvil: Anvil, options: JobOptions): Promise<BlockJob> => {
  await anvil.call("evm_setNextBlockTimestamp", Number(options.timestamp));
  const first = await pendingBlock(anvil);
  const base: FlashblockBase = {
    parent_beacon_block_root: first.parentBeaconBlockRoot,
    parent_hash: first.parentHash,
    fee_recipient: first.miner,
    prev_randao: first.mixHash,
    block_number: first.number,
    gas_limit: first.gasLimit,
    timestamp: first.timestamp,
    extra_data: first.extraData,
    base_fee_per_gas: first.baseFeePerGas,
  };
  const number = BigInt(first.number);
  const included: Transaction[] = [];
  const handed: HeldTransaction[] = [];
  const encoded: Uint8Array[] = [];
  /** The receipts with the node's depositNonce, for the comparison with its receiptsRoot. */
  const encodedAsNode: Uint8Array[] = [];
  const balances = new Map<Hex, bigint>();
  /** Accounts that changed since the last message. The miner gets the fees. */
  let touched = new Set<Address>([first.miner]);
  let length = 0;
  let gasUsed = 0n;
  let gasLimits = 0n;

  const handOver = (transaction: Transaction) => anvil.call("eth_sendRawTransaction", formatData(transaction.raw));

  /** Sends the first transaction of a block, to a contract that does nothing, so that its gas is the gas of the block. */
  const handOverDeposit = async (deposit: Transaction): Promise<Receipt> => {
    const depositNonce = BigInt(String(await anvil.call("eth_getTransactionCount", L1_ATTRIBUTES_SENDER, "pending")));
    await handOver(deposit);
    touched.add(L1_ATTRIBUTES_SENDER).add(L1_BLOCK);
    return {
      type: DEPOSIT_TYPE,
      status: true,
      ...account(deposit, BigInt((await pendingBlock(anvil)).gasUsed)),
      logs: [],
      logsBloom: createBloom(),
      depositNonce,
      depositReceiptVersion: DEPOSIT_RECEIPT_VERSION,
    };
  };

  /** Traces a transaction after those that the node has, sends it to the node, and returns its expected receipt. */
  const handOverSigned = async ({ transaction, sender }: HeldTransaction): Promise<Receipt> => {
    const tracer = { tracer: "callTracer", tracerConfig: { withLog: true } };
    const frame = (await anvil.call(
      "debug_traceCall",
      formatCall(transaction, sender),
      "pending",
      tracer,
    )) as CallFrame;
    await handOver(transaction);
    for (const each of accountsOf(frame)) {
      touched.add(each);
    }
    const logs = logsOf(frame);
    return {
      type: transaction.type,
      status: frame.error === undefined,
      ...account(transaction, BigInt(frame.gasUsed)),
      logs,
      logsBloom: bloomOfLogs(logs),
    };
  };

  const account = (transaction: Transaction, gas: bigint) => {
    gasUsed += gas;
    gasLimits += transaction.gas;
    return { cumulativeGasUsed: gasUsed };
  };

  const keep = (transaction: Transaction, receipt: Receipt) => {
    included.push(transaction);
    encoded.push(encodeReceipt(receipt));
    // anvil returns the nonce after the deposit. The specification requires the nonce before it.
    const asNode =
      receipt.depositNonce === undefined ? receipt : { ...receipt, depositNonce: receipt.depositNonce + 1n };
    encodedAsNode.push(encodeReceipt(asNode));
  };

  /** Reads the balances that changed since the last message. Others are not read: the node executes the whole block for each one. */
  const updateBalances = async (): Promise<void> => {
    const accounts = [...touched];
    const params = accounts.map((each) => [each, "pending"]);
    const values = await anvil.callAll("eth_getBalance", params);
    for (const [at, each] of accounts.entries()) {
      balances.set(each, BigInt(String(values[at])));
    }
    touched = new Set([first.miner]);
  };

  const checked = async (): Promise<NodeBlock> => {
    const block = await pendingBlock(anvil);
    const expected = included.map(({ hash }) => hash).join();
    if (block.transactions.join() !== expected) {
      throw new Error(`the node builds another block: ${block.transactions}`);
    }
    if (orderedTrieRoot(encodedAsNode) !== block.receiptsRoot) {
      throw new Error(`receipts of block ${number} were not foreseen: ${included.at(-1)?.hash}`);
    }
    return block;
  };

  return {
    number,
    timestamp: options.timestamp,
    included,
    handed,
    get length() {
      return length;
    },
    get gasLeft() {
      return BigInt(first.gasLimit) - gasLimits;
    },
    next: async (held, previous, budgetMs) => {
      const endMs = performance.now() + budgetMs;
      const receipts = new Map<Hash, Receipt>();
      const from = included.length;
      if (length === 0 && options.deposits) {
        const deposit = parseTransaction(encodeL1Attributes(number, options.timestamp));
        const receipt = await handOverDeposit(deposit);
        keep(deposit, receipt);
        receipts.set(deposit.hash, receipt);
      }
      const left = [...held];
      // The node executes the whole block for each trace, so that messages of a long block have fewer transactions.
      while (left.length > 0 && performance.now() < endMs) {
        const [each] = left.splice(0, 1);
        if (each === undefined) {
          break;
        }
        try {
          const receipt = await handOverSigned(each);
          keep(each.transaction, receipt);
          handed.push(each);
          receipts.set(each.transaction.hash, receipt);
        } catch (error) {
          // A transaction that the node refuses is in no block.
          if (!(error instanceof AnvilError)) {
            throw error;
          }
        }
      }
      const block = await checked();
      const receiptsRoot = orderedTrieRoot(encoded);
      const diff: FlashblockDiff = {
        state_root: block.stateRoot,
        receipts_root: receiptsRoot,
        logs_bloom: block.logsBloom,
        gas_used: block.gasUsed,
        block_hash: hashHeader({ ...headerOf(block), receiptsRoot }),
        transactions: included.slice(from).map(({ raw }) => formatData(raw)),
        withdrawals: [],
        withdrawals_root: block.withdrawalsRoot,
        blob_gas_used: block.blobGasUsed,
      };
      if (["a", "b", "d"].includes(options.generation)) {
        await updateBalances();
      }
      const message: Flashblock = {
        payload_id: options.payloadId,
        index: length,
        ...(length === 0 ? { base } : {}),
        diff,
        metadata: formatMetadata(options.generation, {
          blockNumber: Number(number),
          receipts,
          balances,
          previous,
        }),
      };
      length++;
      return { message, left };
    },
  };
};
