import { createMethodMatcher } from "../access/methodRules.ts";

/**
 * Methods that write to a node, control it, unlock its accounts or sign with them.
 * A name, or a beginning and `*`. Sources: the JSON-RPC documentation of each client or tool.
 */
export const REFUSED_METHODS: readonly string[] = [
  // geth, Erigon, Nethermind, Besu, reth: management.
  ...["admin_*", "personal_*", "engine_*", "miner_*", "debug_*", "les_*", "clique_*", "testing_*"],
  // Signing and sending with the accounts of a node, and work for its miner.
  ...[
    "eth_sendTransaction*",
    "eth_sendUnsignedTransaction",
    "eth_sign*",
    "eth_resend",
    "eth_submitWork",
    "eth_submitHashrate",
  ],
  // clef, and the wallet methods of reth.
  ...["account_*", "clef_*", "wallet_*"],
  // Development nodes: anvil, Hardhat, ganache, Tenderly.
  ...["anvil_*", "hardhat_*", "evm_*", "ganache_*", "tenderly_*"],
  // OpenEthereum and Nethermind: settings, peers, accounts and signing.
  ...["parity_set*", "parity_new*", "parity_kill*", "parity_change*", "parity_test*", "parity_remove*"],
  ...["parity_addReservedPeer", "parity_dropNonReservedPeers", "parity_acceptNonReservedPeers", "parity_import*"],
  ...["parity_start*", "parity_stop*", "parity_derive*", "parity_export*", "parity_postTransaction", "signer_*"],
  ...["parity_sign*", "parity_postSign", "parity_decryptMessage", "parity_composeTransaction", "parity_executeUpgrade"],
  ...["parity_accountsInfo", "parity_allAccountsInfo", "parity_lockAccount", "parity_unlockAccount"],
  // Besu and GoQuorum: validators, permissions, private transactions, plugins.
  ...["ibft_*", "qbft_*", "istanbul_*", "perm_*", "priv_*", "plugins_*", "raft_*", "quorumPermission_*"],
  // OP stack: op-conductor, op-geth and op-node.
  ...["conductor_*", "opp2p_*", "opstack_*"],
  // reth: payloads of its own engine interface.
  "reth_*",
  // Stores and messages of old clients.
  ...["db_put*", "shh_*", "bzz_*"],
];

/** Methods that match REFUSED_METHODS and only read. */
export const READING_METHODS: readonly string[] = [
  ...["debug_traceBlock", "debug_traceBlockByHash", "debug_traceBlockByNumber", "debug_traceBadBlock"],
  ...["debug_traceCall", "debug_traceCallMany", "debug_traceChain", "debug_traceTransaction", "debug_getRaw*"],
  ...["debug_storageRangeAt", "debug_accountRange", "debug_executionWitness", "debug_executionWitnessByBlockHash"],
  ...["debug_executionWitnessCall", "debug_getBadBlocks", "debug_dbGet", "debug_dbAncient*", "debug_intermediateRoots"],
  ...["debug_printBlock", "debug_getModifiedAccounts*", "debug_getAccessibleState", "debug_gcStats"],
  "debug_chaindbProperty",
  ...["clique_getS*", "clique_status", "ibft_getValidators*", "qbft_getValidators*"],
  ...[
    "qbft_getSignerMetrics",
    "ibft_getSignerMetrics",
    "reth_getBalanceChangesInBlock",
    "reth_getBlockExecutionOutcome",
  ],
];

/** Returns the pattern of an entry of `allowNamespaces`: `admin` is a namespace, `eth_sendTransaction` a method. */
const toPattern = (entry: string): string => (entry.includes("_") ? entry : `${entry}_*`);

/** Creates the check of methods that are refused unless `allowed` has their namespace or their name. */
export const createRefusedMethods = (allowed: readonly string[]): ((method: string) => boolean) => {
  const isListed = createMethodMatcher(REFUSED_METHODS);
  const isExempt = createMethodMatcher([...READING_METHODS, ...allowed.map(toPattern)]);
  return (method) => isListed(method) && !isExempt(method);
};
