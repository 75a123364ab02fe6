import assert from "node:assert/strict";
import { test } from "node:test";
import { createRefusedMethods } from "../../src/methods/refusedMethods.ts";
import { table } from "../../src/methods/table.ts";

const WRITES = [
  ...["admin_peers", "personal_sign", "engine_newPayloadV4", "miner_start", "debug_setHead", "debug_chaindbCompact"],
  ...["debug_standardTraceBlockToFile", "debug_traceBlockFromFile", "debug_traceBlockByHashToFile"],
  ...["eth_sendTransaction", "eth_sendTransactionSync", "eth_sign", "eth_signTransaction", "eth_resend"],
  ...["anvil_setBalance", "hardhat_mine", "evm_setNextBlockTimestamp", "parity_setMode", "clique_propose"],
  ...["les_addBalance", "opp2p_blockPeer", "testing_buildBlockV1", "reth_newPayload", "wallet_sendTransaction"],
];
const READS = [
  ...["eth_call", "debug_traceCall", "debug_getRawBlock", "anything", "op_supportedCapabilities", "eth_newMethod"],
  ...["eth_sendRawTransaction", "eth_sendRawTransactionConditional", "parity_pendingTransactions", "clique_getSigners"],
  ...["debug_printBlock", "debug_dbAncient", "debug_dbAncients", "debug_gcStats", "debug_chaindbProperty"],
  ...["debug_getModifiedAccountsByHash", "debug_getModifiedAccountsByNumber", "debug_getAccessibleState"],
];

test("methods that write to a node or use its accounts are refused by default, and reads are not", () => {
  const isRefused = createRefusedMethods([]);
  assert.deepEqual(
    WRITES.filter((method) => !isRefused(method)),
    [],
  );
  assert.deepEqual(
    [...READS, ...table.map(({ name }) => name)].filter((method) => isRefused(method)),
    [],
  );
});

test("an allowed namespace admits all its methods, and an allowed method only itself", () => {
  const isRefused = createRefusedMethods(["admin", "eth_sendTransaction", "anvil_set*"]);
  const refused = ["admin_peers", "eth_sendTransaction", "eth_sign", "anvil_setBalance", "anvil_mine", "miner_start"];
  assert.deepEqual(
    refused.filter((method) => isRefused(method)),
    ["eth_sign", "anvil_mine", "miner_start"],
  );
});
