import type { ChainCall } from "../../support/servers/sealedChain.ts";
import { EMITTER, TOPIC } from "../../world/chain/emitter.ts";
import { SENDERS } from "../../world/chain/openBlock.ts";
import { ancestorAt } from "../../world/chain/sealedBlock.ts";
import type { TruthChain } from "../../world/chain/truthChain.ts";
import { mutateJson } from "./mutateJson.ts";
import type { Choices } from "./random.ts";

type Create = (chain: TruthChain, choices: Choices) => unknown;

const blockTag: Create = (chain, choices) =>
  choices.pick([
    "latest",
    "pending",
    "safe",
    "finalized",
    "earliest",
    `0x${choices.below(chain.head.number).toString(16)}`,
  ]);
const blockHash: Create = (chain, choices) => ancestorAt(chain.head, choices.below(chain.head.number))?.hash;
const transactionHash: Create = (chain, choices) => choices.pick(chain.transactions);
const address: Create = (_, choices) => choices.pick([...SENDERS, EMITTER]);
const index: Create = (_, choices) => `0x${choices.below(3)}`;
const flag: Create = (_, choices) => choices.chance(0.5);
const slot: Create = (_, choices) => `0x${choices.below(3).toString(16).padStart(64, "0")}`;
const call: Create = (chain, choices) => ({
  from: address(chain, choices),
  to: EMITTER,
  ...(choices.chance(0.3) && { gas: "0x100000" }),
  ...(choices.chance(0.3) && { data: TOPIC }),
  ...(choices.chance(0.2) && { value: "0x0", type: "0x2", maxFeePerGas: "0x10", accessList: [] }),
});
const overrides: Create = (chain, choices) => ({
  [String(address(chain, choices))]: {
    ...(choices.chance(0.5) && { balance: "0xffff", nonce: "0x1" }),
    ...(choices.chance(0.5) && { code: "0x5f545f5260205ff3" }),
    ...(choices.chance(0.5) && { stateDiff: { [String(slot(chain, choices))]: TOPIC } }),
  },
});
const blockOverrides: Create = () => ({
  number: "0x400",
  time: "0x7fffffff",
  gasLimit: "0xffffff",
  baseFeePerGas: "0x1",
});
const filter: Create = (chain, choices) => ({
  ...(choices.chance(0.5) && { address: EMITTER }),
  ...(choices.chance(0.5) && { topics: [TOPIC, choices.chance(0.5) ? null : [TOPIC]] }),
  ...(choices.chance(0.3)
    ? { blockHash: blockHash(chain, choices) }
    : { fromBlock: blockTag(chain, choices), toBlock: blockTag(chain, choices) }),
});
const simulation: Create = (chain, choices) => ({
  blockStateCalls: Array.from({ length: 1 + choices.below(3) }, () => ({
    ...(choices.chance(0.3) && { blockOverrides: blockOverrides(chain, choices) }),
    ...(choices.chance(0.4) && { stateOverrides: overrides(chain, choices) }),
    calls: Array.from({ length: choices.below(4) }, () => call(chain, choices)),
  })),
  ...(choices.chance(0.3) && { validation: true, traceTransfers: true, returnFullTransactions: true }),
});
const percentiles: Create = (_, choices) => (choices.chance(0.5) ? [] : [10, 50]);
const rawTransaction: Create = (_, choices) => `0x02${"c0".repeat(choices.below(40))}`;
const filterId: Create = (_, choices) => `0x${choices.below(2 ** 31).toString(16)}`;
const storage: Create = (chain, choices) => ({ [EMITTER]: [slot(chain, choices)] });

/** The parameters of each method. The last ones may be left out. */
const METHODS: Readonly<Record<string, readonly Create[]>> = {
  eth_blockNumber: [],
  eth_chainId: [],
  net_version: [],
  eth_gasPrice: [],
  eth_syncing: [],
  eth_feeHistory: [index, blockTag, percentiles],
  eth_getBlockByNumber: [blockTag, flag],
  eth_getBlockByHash: [blockHash, flag],
  eth_getBlockReceipts: [blockTag],
  eth_getBlockTransactionCountByNumber: [blockTag],
  eth_getBlockTransactionCountByHash: [blockHash],
  eth_getTransactionByBlockNumberAndIndex: [blockTag, index],
  eth_getTransactionByBlockHashAndIndex: [blockHash, index],
  eth_getTransactionByHash: [transactionHash],
  eth_getTransactionReceipt: [transactionHash],
  eth_getLogs: [filter],
  eth_newFilter: [filter],
  eth_newBlockFilter: [],
  eth_newPendingTransactionFilter: [],
  eth_getFilterChanges: [filterId],
  eth_getFilterLogs: [filterId],
  eth_uninstallFilter: [filterId],
  eth_getBalance: [address, blockTag],
  eth_getTransactionCount: [address, blockTag],
  eth_getCode: [address, blockTag],
  eth_getStorageAt: [address, slot, blockTag],
  eth_getStorageValues: [storage, blockTag],
  eth_getProof: [address, percentiles, blockTag],
  eth_call: [call, blockTag, overrides, blockOverrides],
  eth_estimateGas: [call, blockTag, overrides],
  eth_createAccessList: [call, blockTag],
  eth_simulateV1: [simulation, blockTag],
  eth_sendRawTransaction: [rawTransaction],
  eth_sendRawTransactionSync: [rawTransaction],
  eth_subscribe: [
    (_, choices) =>
      choices.pick([
        "newHeads",
        "logs",
        "transactionReceipts",
        "transactionInclusion",
        "pendingLogs",
        "newFlashblocks",
        "syncing",
      ]),
    filter,
  ],
  eth_unsubscribe: [filterId],
  debug_traceTransaction: [transactionHash],
  debug_traceCall: [call, blockTag],
  admin_peers: [],
  foo_bar: [filter],
};

/** Creates a call with parameters of the right types. */
const grammarCall = (chain: TruthChain, choices: Choices): ChainCall => {
  const method = choices.pick(Object.keys(METHODS));
  const creates = METHODS[method] ?? [];
  const length = choices.chance(0.85) ? creates.length : choices.below(creates.length + 1);
  return { method, params: creates.slice(0, length).map((create) => create(chain, choices)) };
};

/** Creates the JSON value of a request or of a batch, which may be malformed. */
export const grammarRequest = (chain: TruthChain, choices: Choices): unknown => {
  const one = (): unknown => {
    const request = { jsonrpc: "2.0", id: choices.below(1_000), ...grammarCall(chain, choices) };
    return choices.chance(0.6) ? mutateJson(request, choices) : request;
  };
  return choices.chance(0.2) ? Array.from({ length: choices.below(8) }, one) : one();
};

/** Words of requests, for changes of bytes. */
export const REQUEST_WORDS: readonly string[] = [
  ...['"jsonrpc"', '"id":', '"method":', '"params":', "[", "]", "{", "}", '"2.0"', '"eth_call"', '"\\u0000"', "1e400"],
  ...["\\ud800", "-0", "0x", '"latest"', '"__proto__":{', "[[[[[[[[", "true", "null", ",,", '"blockHash":'],
];
