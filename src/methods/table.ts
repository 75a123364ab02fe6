import { isFields } from "../json/jsonBytes.ts";
import { blockNumberOrTag, blockNumberOrTagOrHash, stateBlock } from "./blockParams.ts";
import { blockRead } from "./blockRead.ts";
import { stateRead } from "./blockReadSpec.ts";
import { blockByNumber, blockReceipts, fullTransactions } from "./blockSpecs.ts";
import { eth_capabilities } from "./eth_capabilities.ts";
import { eth_config } from "./eth_config.ts";
import { eth_estimateGas } from "./eth_estimateGas.ts";
import { eth_feeHistory } from "./eth_feeHistory.ts";
import { eth_fillTransaction } from "./eth_fillTransaction.ts";
import { eth_getBalance } from "./eth_getBalance.ts";
import { eth_getLogs } from "./eth_getLogs.ts";
import { eth_getTransactionCount } from "./eth_getTransactionCount.ts";
import { eth_sendRawTransaction } from "./eth_sendRawTransaction.ts";
import { eth_sendRawTransactionSync } from "./eth_sendRawTransactionSync.ts";
import { eth_simulateV1 } from "./eth_simulateV1.ts";
import { eth_subscribe } from "./eth_subscribe.ts";
import { pendingAccessList, pendingCall } from "./executions.ts";
import { filterMethods } from "./filterMethods.ts";
import type { Method } from "./method.ts";
import {
  arrayOf,
  atMost,
  lengthOf,
  mapOf,
  optional,
  orNull,
  readAddress,
  readAny,
  readData,
  readHash,
  readProofKey,
  readQuantity,
  readSlot,
  required,
} from "./paramSpec.ts";
import {
  readPendingCode,
  readPendingStorage,
  readPendingStorageValues,
  readPendingTransaction,
  readPendingTransactionCount,
} from "./pendingReads.ts";
import {
  type ByHashRead,
  blockInView,
  byHashRead,
  eth_blockNumber,
  eth_chainId,
  eth_maxPriorityFeePerGas,
  net_version,
  plainRead,
  receiptInView,
  servedBlockRead,
  transactionInView,
  transactionTrace,
} from "./plainRead.ts";
import { readBlockOverrides, readStateOverrides, readTransaction } from "./readTransaction.ts";

const uncached = { retention: "never", atPending: "none" } as const;

const spec: ByHashRead = {
  name: "eth_getBlockByHash",
  params: [required("hash", readHash), fullTransactions],
  retention: "byHash",
  blockField: "hash",
  isSlow: true,
  inView: blockInView,
  prove: { byBlock: "block" },
};

/** Returns a block with transaction hashes or full transactions, or null (docs/answers.md, Blocks and pending). */
const eth_getBlockByHash = byHashRead(spec, servedBlockRead(spec));

/** Returns a slot's value, 32 bytes (docs/methods.md, State at pending). */
const eth_getStorageAt = blockRead({
  name: "eth_getStorageAt",
  params: [required("address", readAddress), required("position", readSlot), stateBlock],
  kind: "state",
  stateRead: stateRead("eth_getStorageAt", "slot"),
  prove: { byProof: "slot" },
  pending: readPendingStorage,
});

/** 70,000 keys held the event loop for 70 ms. */
const MAX_PROOF_KEYS = 10_000;

const address = required("address", readAddress);
const hash = required("hash", readHash);
const index = required("index", readQuantity);
const transaction = required("transaction", readTransaction);
const stateOverrides = optional("stateOverrides", readStateOverrides);
const blockOverrides = optional("blockOverrides", readBlockOverrides);
const options = optional("options", readAny);

/** Creates a read by block number that has an equivalent by block hash. */
const block = (name: string, byHashMethod: string, ...rest: Parameters<typeof required>[]) => ({
  name,
  kind: "block" as const,
  params: [blockNumberOrTag, ...rest.map((parameter) => required(...parameter))],
  byHashMethod,
  // The block may have nothing at that index.
  ...(rest.length > 0 && { isNullable: true as const }),
});

/** Reads the access list of a block (EIP-7928), which exists since Amsterdam. The execution API has the hash as a string. */
const accessListRead = (name: string): Method =>
  blockRead({
    name,
    params: [blockNumberOrTagOrHash],
    kind: "block",
    byHashMethod: name,
    isSlow: true,
    prove: "byBlock",
  });

/** geth, internal/ethapi/api.go, maxGetStorageSlots: of all addresses together. */
const MAX_STORAGE_SLOTS = 1_024;

const countSlots = (byAddress: unknown): number =>
  isFields(byAddress) ? Object.values(byAddress).reduce((sum: number, slots) => sum + lengthOf(slots), 0) : 0;

/** Slots by address: `eth_getStorageValues` of the execution API. */
const slotsByAddress = atMost(MAX_STORAGE_SLOTS, "slots", mapOf(readAddress, arrayOf(readSlot)), countSlots);

/**
 * Every method that forebay knows, with its retention (docs/architecture.md, invariant 1).
 * A method outside the table is forwarded unchanged and never cached.
 */
export const table: readonly Method[] = [
  eth_blockNumber,
  eth_feeHistory,
  blockRead(blockByNumber),
  eth_getLogs,
  eth_simulateV1,
  eth_getStorageAt,
  eth_getTransactionCount,

  eth_fillTransaction,
  eth_sendRawTransaction,
  eth_sendRawTransactionSync,
  ...filterMethods,
  eth_subscribe,
  {
    name: "eth_unsubscribe",
    ...uncached,
    handle: ({ chain, call, context }) => chain.subscriptions.unsubscribe(call, context),
  },

  eth_chainId,
  net_version,
  eth_config,
  eth_capabilities,

  plainRead({ name: "eth_gasPrice", params: [], retention: "head" }),
  eth_maxPriorityFeePerGas,
  plainRead({ name: "eth_blobBaseFee", params: [], retention: "head" }),
  plainRead({ name: "eth_baseFee", params: [], retention: "head" }),

  eth_getBlockByHash,
  servedBlockRead({
    name: "eth_getBlockTransactionCountByHash",
    params: [hash],
    retention: "byHash",
    prove: { byBlock: "transactionCount" },
  }),
  servedBlockRead({
    name: "eth_getUncleCountByBlockHash",
    params: [hash],
    retention: "byHash",
    prove: { byBlock: "uncleCount" },
  }),
  plainRead({
    name: "eth_getTransactionByBlockHashAndIndex",
    params: [hash, index],
    retention: "byHash",
    prove: { byBlock: "transactionAt" },
  }),
  plainRead({ name: "eth_getUncleByBlockHashAndIndex", params: [hash, index], retention: "byHash" }),
  plainRead({ name: "eth_getRawTransactionByHash", params: [hash], retention: "byHash" }),
  plainRead({ name: "eth_getRawTransactionByBlockHashAndIndex", params: [hash, index], retention: "byHash" }),
  servedBlockRead({ name: "eth_getHeaderByHash", params: [hash], retention: "byHash", prove: "byBlock" }),
  plainRead({ name: "debug_getRawTransaction", params: [hash], retention: "byHash" }),
  plainRead({ name: "debug_traceBlockByHash", params: [hash, options], retention: "byHash", isSlow: true }),

  byHashRead({
    name: "eth_getTransactionByHash",
    params: [hash],
    retention: "byTransaction",
    blockField: "blockHash",
    inView: transactionInView,
    prove: { byBlock: "transaction" },
  }),
  byHashRead({
    name: "eth_getTransactionReceipt",
    params: [hash],
    retention: "byTransaction",
    blockField: "blockHash",
    inView: receiptInView,
    prove: { byBlock: "receipt" },
  }),

  blockRead({
    ...block("eth_getBlockTransactionCountByNumber", "eth_getBlockTransactionCountByHash"),
    pending: readPendingTransactionCount,
    prove: { byBlock: "transactionCount" },
  }),
  blockRead({
    ...block("eth_getUncleCountByBlockNumber", "eth_getUncleCountByBlockHash"),
    prove: { byBlock: "uncleCount" },
  }),
  blockRead({
    ...block("eth_getTransactionByBlockNumberAndIndex", "eth_getTransactionByBlockHashAndIndex", [
      "index",
      readQuantity,
    ]),
    blockField: "blockHash",
    pending: readPendingTransaction,
    prove: { byBlock: "transactionAt" },
  }),
  blockRead(block("eth_getUncleByBlockNumberAndIndex", "eth_getUncleByBlockHashAndIndex", ["index", readQuantity])),
  blockRead(
    block("eth_getRawTransactionByBlockNumberAndIndex", "eth_getRawTransactionByBlockHashAndIndex", [
      "index",
      readQuantity,
    ]),
  ),
  blockRead({ ...block("eth_getHeaderByNumber", "eth_getHeaderByHash"), prove: "byBlock" }),
  blockRead(blockReceipts),
  blockRead({ name: "debug_getRawBlock", params: [blockNumberOrTagOrHash], kind: "block", isSlow: true }),
  blockRead({ name: "debug_getRawHeader", params: [blockNumberOrTagOrHash], kind: "block" }),
  blockRead({ name: "debug_getRawReceipts", params: [blockNumberOrTagOrHash], kind: "block", isSlow: true }),
  accessListRead("eth_getBlockAccessList"),
  accessListRead("debug_getRawBlockAccessList"),
  blockRead({
    name: "debug_traceBlockByNumber",
    params: [blockNumberOrTag, options],
    kind: "block",
    byHashMethod: "debug_traceBlockByHash",
    isSlow: true,
  }),
  blockRead({
    name: "trace_block",
    params: [blockNumberOrTag],
    kind: "block",
    byNumberOnly: true,
    blockField: "firstBlockHash",
    isSlow: true,
  }),

  transactionTrace("debug_traceTransaction", [hash, options]),
  transactionTrace("trace_transaction", [hash]),
  transactionTrace("trace_replayTransaction", [hash, required("traceTypes", readAny)]),

  eth_getBalance,
  blockRead({
    name: "eth_getCode",
    params: [address, stateBlock],
    kind: "state",
    stateRead: stateRead("eth_getCode", "code"),
    prove: { byProof: "code" },
    pending: readPendingCode,
  }),
  blockRead({
    name: "eth_getStorageValues",
    params: [required("slots", slotsByAddress), stateBlock],
    kind: "state",
    pending: readPendingStorageValues,
  }),
  blockRead({
    name: "eth_getProof",
    params: [
      address,
      required("keys", orNull(atMost(MAX_PROOF_KEYS, "values", arrayOf(readProofKey)), [])),
      stateBlock,
    ],
    kind: "state",
    prove: "byProof",
  }),
  blockRead({ name: "eth_getAccount", params: [address, stateBlock], kind: "state" }),
  blockRead({ name: "eth_getAccountInfo", params: [address, stateBlock], kind: "state" }),
  blockRead({
    name: "eth_call",
    params: [transaction, stateBlock, stateOverrides, blockOverrides],
    kind: "state",
    cachedCall: "eth_call",
    pending: pendingCall,
    prove: "byExecution",
  }),
  eth_estimateGas,
  blockRead({
    name: "eth_createAccessList",
    params: [transaction, stateBlock, stateOverrides],
    kind: "state",
    pending: pendingAccessList,
    isSlow: true,
  }),
  blockRead({
    name: "debug_traceCall",
    params: [transaction, blockNumberOrTagOrHash, options],
    kind: "state",
    isSlow: true,
  }),

  plainRead({ name: "eth_syncing", params: [], retention: "never" }),
  plainRead({ name: "net_listening", params: [], retention: "never" }),
  plainRead({ name: "net_peerCount", params: [], retention: "never" }),
  plainRead({ name: "web3_clientVersion", params: [], retention: "never" }),
  plainRead({ name: "web3_sha3", params: [required("data", readData)], retention: "never" }),
  plainRead({ name: "eth_accounts", params: [], retention: "never" }),
  plainRead({ name: "txpool_status", params: [], retention: "never" }),
  plainRead({ name: "txpool_content", params: [], retention: "never", isSlow: true }),
  plainRead({ name: "txpool_contentFrom", params: [address], retention: "never", isSlow: true }),
  plainRead({ name: "txpool_inspect", params: [], retention: "never", isSlow: true }),
];
