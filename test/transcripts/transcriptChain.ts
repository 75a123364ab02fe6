import assert from "node:assert/strict";
import { encodeDeployData, encodeFunctionData, getContractAddress, type Hex } from "viem";
import { createDevnet, type Devnet } from "../devnet/devnet.ts";
import type { Flashblock } from "../devnet/flashblock.ts";
import { TOKEN_ABI, TOKEN_BYTECODE } from "../devnet/token.ts";
import { devAccounts } from "../devnet/traffic.ts";
import { rpc } from "../support/clients/rpc.ts";
import { settled } from "../support/clients/settled.ts";
import { until } from "../support/clients/until.ts";
import { createService } from "../support/servers/service.ts";

/**
 * The chain of the transcripts. It is the same in every run, down to its hashes:
 * - block 1 creates the token, block 2 transfers tokens and ether, block 3 has a transaction that reverts;
 * - 70 empty blocks follow, so that block 10 is final;
 * - block 74 stores 0x2a in the token at key 1, and transfers ether;
 * - pending block 75 has two flashblocks: an empty one, and one that stores 0x2b at key 1 and transfers tokens.
 */
export interface TranscriptChain {
  readonly devnet: Devnet;
  /** Without forebay, clients talk to the node. */
  readonly url: string;
  /** Runs an action of a transcript. */
  act(action: string): Promise<void>;
  close(): Promise<void>;
}

const CHAIN_ID = 901;
/** 2023-11-14T22:13:20Z. */
const GENESIS_TIME = 1_700_000_000;
/** A feed is stale after three block times without a message. Within this one, all transcripts are played. */
const BLOCK_SECONDS = 60;
const EMPTY_BLOCKS = 70;
const SUPPLY_EACH = 10n ** 24n;
const TO = "0x00000000000000000000000000000000000000cc";
const FEES = { maxFeePerGas: 20n * 10n ** 9n, maxPriorityFeePerGas: 1_000_000n } as const;

type Account = (typeof devAccounts)[number];
interface Fields {
  readonly to?: Hex;
  readonly data?: Hex;
  readonly value?: bigint;
  readonly gas: bigint;
}

/** The two accounts that send transactions in this order, each with its nonces from 0. */
const [alice, bob] = devAccounts as [Account, Account];
const token = getContractAddress({ from: alice.address, nonce: 0n });

const signTransaction = (account: Account, nonce: number, fields: Fields): Promise<Hex> =>
  account.signTransaction({ type: "eip1559", chainId: CHAIN_ID, nonce, ...FEES, ...fields });

const store = (value: bigint): Fields => ({
  to: token,
  data: encodeFunctionData({ abi: TOKEN_ABI, functionName: "store", args: [1n, value] }),
  gas: 200_000n,
});
const transfer = (value: bigint): Fields => ({
  to: token,
  data: encodeFunctionData({ abi: TOKEN_ABI, functionName: "transfer", args: [TO, value] }),
  gas: 200_000n,
});
const pay = (value: bigint): Fields => ({ to: TO, value, gas: 21_000n });
const create: Fields = {
  data: encodeDeployData({
    abi: TOKEN_ABI,
    bytecode: TOKEN_BYTECODE,
    args: [[alice.address, bob.address], SUPPLY_EACH],
  }),
  gas: 3_000_000n,
};
const fail: Fields = { to: token, data: encodeFunctionData({ abi: TOKEN_ABI, functionName: "fail" }), gas: 200_000n };

const sendAll = async (devnet: Devnet, sent: readonly (readonly [Account, number, Fields])[]): Promise<void> => {
  for (const [account, nonce, fields] of sent) {
    const { body } = await rpc(devnet.url, "eth_sendRawTransaction", [await signTransaction(account, nonce, fields)]);
    assert.equal(body.error, undefined);
  }
};

const buildBlocks = async (devnet: Devnet): Promise<void> => {
  const blocks: readonly (readonly (readonly [Account, number, Fields])[])[] = [
    [[alice, 0, create]],
    [
      [alice, 1, transfer(7n)],
      [bob, 0, pay(5n)],
    ],
    [[bob, 1, fail]],
  ];
  const seal = async (transactions: (typeof blocks)[number]): Promise<void> => {
    await devnet.step();
    await sendAll(devnet, transactions);
    await devnet.step();
    await devnet.sealNow();
  };
  for (const block of blocks) {
    await seal(block);
  }
  await devnet.rpc("anvil_setBlockTimestampInterval", BLOCK_SECONDS);
  await devnet.rpc("anvil_mine", `0x${EMPTY_BLOCKS.toString(16)}`);
  await devnet.rpc("anvil_removeBlockTimestampInterval");
  await seal([
    [alice, 2, store(0x2an)],
    [bob, 2, pay(6n)],
  ]);
};

const startDevnet = async (): Promise<Devnet> => {
  const devnet = await createDevnet({
    manual: true,
    network: "ethereum",
    chainId: CHAIN_ID,
    genesisTime: GENESIS_TIME,
    blockTimeMs: BLOCK_SECONDS * 1_000,
    generation: "e",
  });
  await buildBlocks(devnet);
  return devnet;
};

interface Client {
  readonly url: string;
  /** Resolves once the client's server has this pending block. */
  followPending(message: Flashblock): Promise<void>;
  followHead(number: bigint): Promise<void>;
}

const actionsOf = (devnet: Devnet, { followPending, followHead }: Client): ReadonlyMap<string, () => Promise<void>> => {
  const step = async (): Promise<Flashblock> => {
    const message = await devnet.step();
    await followPending(message);
    return message;
  };
  return new Map<string, () => Promise<void>>([
    ["flashblock", async () => void (await step())],
    // A request that is still waiting for its response may have sent the transaction.
    ["include", () => until(async () => (await step()).diff.transactions.length > 0, "a flashblock has a transaction")],
    ["seal", async () => followHead((await devnet.sealNow()).number)],
  ]);
};

const createChain = async (
  devnet: Devnet,
  client: Client,
  closeClient: () => Promise<void>,
): Promise<TranscriptChain> => {
  const actions = actionsOf(devnet, client);
  const act = async (action: string): Promise<void> => {
    const run = actions.get(action);
    assert.ok(run, `no action: ${action}`);
    await run();
  };
  await act("flashblock");
  await sendAll(devnet, [
    [alice, 3, store(0x2bn)],
    [bob, 3, transfer(9n)],
  ]);
  await act("flashblock");
  const close = async () => {
    await closeClient();
    await devnet.close();
  };
  return { devnet, url: client.url, act, close };
};

/** Starts the chain, with clients that talk to its node. */
export const startNodeChain = async (): Promise<TranscriptChain> => {
  const devnet = await startDevnet();
  const nothing = async () => undefined;
  return createChain(devnet, { url: devnet.url, followPending: nothing, followHead: nothing }, nothing);
};

/** Starts the chain, with clients that talk to forebay. */
export const startForebayChain = async (): Promise<TranscriptChain> => {
  const devnet = await startDevnet();
  assert.ok(devnet.feedUrl);
  const service = await createService({
    nodes: [{ url: devnet.url, wsUrl: devnet.anvilWsUrl }],
    pending: { mode: "feed", feeds: [devnet.feedUrl] },
    forks: "prague",
    blockTimeMs: BLOCK_SECONDS * 1_000,
  });
  await settled(service);
  const { url } = service;
  const followPending = ({ diff }: Flashblock) =>
    until(async () => {
      const { body, headers } = await rpc(url, "eth_getBlockByNumber", ["pending", false]);
      const block = body.result as { readonly hash: string };
      return block.hash === diff.block_hash && headers.get("x-forebay-pending") === "live";
    }, "the pending block is executed");
  const followHead = (number: bigint) =>
    until(async () => BigInt(String((await rpc(url, "eth_blockNumber")).body.result)) >= number, "the new head");
  return createChain(devnet, { url, followPending, followHead }, () => service.close());
};
