import { on } from "node:events";
import { formatTransaction } from "../../src/ethereum/formatTransaction.ts";
import { type Address, formatQuantity, type Hash, isData, isHash, parseData } from "../../src/ethereum/hex.ts";
import type { Anvil } from "./anvil.ts";
import { type Mempool, Refused, readSent } from "./mempool.ts";
import type { FrontMethod } from "./rpcFront.ts";
import type { Sequencer } from "./sequencer.ts";

/** Methods that would change blocks or add transactions without the sequencer. */
const REFUSED = [
  "eth_sendTransaction",
  "eth_sendTransactionSync",
  "eth_sendUnsignedTransaction",
  "evm_mine",
  "evm_mine_detailed",
  "anvil_mine",
  "anvil_mine_detailed",
  "hardhat_mine",
  "anvil_reorg",
  "anvil_rollback",
  "evm_revert",
  "anvil_revert",
  "evm_setAutomine",
  "anvil_setAutomine",
  "evm_setIntervalMining",
  "anvil_setIntervalMining",
];

export interface FrontOptions {
  readonly chainId: number;
  readonly node: () => Anvil;
  readonly mempool: Mempool;
  readonly sequencer: Sequencer;
}

/** Creates the methods that the devnet answers itself, or processes before the node. */
export const frontMethods = ({ chainId, node, mempool, sequencer }: FrontOptions): Map<string, FrontMethod> => {
  const send: FrontMethod = async ([raw]) => {
    if (!isData(raw)) {
      throw new Refused("a transaction's bytes are missing", -32602);
    }
    const held = readSent(parseData(raw), BigInt(chainId));
    if (sequencer.rawOf(held.transaction.hash) !== undefined) {
      throw new Refused("already known");
    }
    mempool.add(held, await sequencer.nextNonce(held.sender));
    return held.transaction.hash;
  };

  /** Returns the receipt of the sealed transaction (EIP-7966, without its timeout). */
  const sendSync: FrontMethod = async (params) => {
    const hash = (await send(params)) as Hash;
    for await (const [{ block }] of on(sequencer.events, "sealed")) {
      if (block.transactions.includes(hash)) {
        break;
      }
    }
    return node().call("eth_getTransactionReceipt", hash);
  };

  /** The next free nonce includes waiting transactions, like a node's pool. */
  const count: FrontMethod = async ([address, block]) => {
    if (block !== "pending" || typeof address !== "string") {
      return undefined;
    }
    const sender = address.toLowerCase() as Address;
    return formatQuantity(mempool.nonceAfter(sender, await sequencer.nextNonce(sender)));
  };

  /** Clients see a waiting transaction as part of the pool. */
  const byHash: FrontMethod = async ([hash]) => {
    const held = isHash(hash) ? mempool.find(hash) : undefined;
    if (held === undefined) {
      return undefined;
    }
    const place = { sender: held.sender, blockHash: null, blockNumber: 0n, transactionIndex: 0 };
    return { ...formatTransaction(held.transaction, place), blockNumber: null, transactionIndex: null };
  };

  /** Forwards only requests for transactions that are not deposits: anvil crashes on raw bytes of a deposit. */
  const rawOf = async (transaction: unknown): Promise<unknown> => {
    const found = transaction as { readonly hash: Hash; readonly type: string } | null;
    if (found === null) {
      return null;
    }
    const known = sequencer.rawOf(found.hash);
    if (known !== undefined) {
      return known;
    }
    return found.type === "0x7e" ? null : node().call("eth_getRawTransactionByHash", found.hash);
  };
  const rawBy =
    (method: string): FrontMethod =>
    async (params) =>
      (await rawOf(await node().call(method, ...params))) ?? null;

  const refuse: FrontMethod = async () => {
    throw new Refused("the devnet's sequencer alone does this", -32601);
  };

  return new Map<string, FrontMethod>([
    ["eth_sendRawTransaction", send],
    ["eth_sendRawTransactionSync", sendSync],
    ["eth_getTransactionCount", count],
    ["eth_getTransactionByHash", byHash],
    ["eth_getRawTransactionByHash", rawBy("eth_getTransactionByHash")],
    ["debug_getRawTransaction", rawBy("eth_getTransactionByHash")],
    ["eth_getRawTransactionByBlockHashAndIndex", rawBy("eth_getTransactionByBlockHashAndIndex")],
    ["eth_getRawTransactionByBlockNumberAndIndex", rawBy("eth_getTransactionByBlockNumberAndIndex")],
    ...REFUSED.map((method): [string, FrontMethod] => [method, refuse]),
  ]);
};
