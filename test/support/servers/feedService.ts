import assert from "node:assert/strict";
import { createDevnet, type Devnet } from "../../devnet/devnet.ts";
import { type devAccounts, startTraffic } from "../../devnet/traffic.ts";
import { metric, type RpcAnswer, rpc } from "../clients/rpc.ts";
import { until } from "../clients/until.ts";
import { createService, type Service } from "./service.ts";

const TRANSFERS = 10;

/** Starts a devnet whose steps the test calls, with a feed without receipts, and some blocks with transfers of a token. */
export const createTokenDevnet = async () => {
  const devnet = await createDevnet({ manual: true, generation: "f" });
  const traffic = await startTraffic({ url: devnet.url, chainId: devnet.chainId, rate: 100, kinds: ["token"] });
  while (traffic.sent < TRANSFERS) {
    await devnet.step();
    await devnet.step();
    await devnet.sealNow();
  }
  await traffic.stop();
  await devnet.step();
  await devnet.step();
  await devnet.sealNow();
  return { devnet, token: traffic.token };
};

/**
 * Starts a service that executes the feed of a devnet, and waits for its connection. Without the first message of a block, it does
 * not show that block. `url`: of a node in front of it.
 */
export const createFeedService = async (devnet: Devnet, url = devnet.url): Promise<Service> => {
  if (devnet.feedUrl === undefined) {
    throw new Error("the devnet has no feed");
  }
  const service = await createService({
    nodes: [{ url, wsUrl: devnet.anvilWsUrl }],
    pending: { mode: "feed", feeds: [devnet.feedUrl] },
    forks: "isthmus",
    quirks: { anvilDepositNonce: true },
  });
  await until(async () => (await metric(service.opsUrl, "forebay_feed_connected")) === 1, "the feed is connected");
  return service;
};

export type FeedBlock = Readonly<Record<string, unknown>> & { readonly transactions: readonly unknown[] };

/** Starts a devnet with a token, and a service that executes its feed. */
export const startFeedRig = async () => {
  const { devnet, token } = await createTokenDevnet();
  const service = await createFeedService(devnet);
  const ask = (method: string, ...params: readonly unknown[]): Promise<RpcAnswer> => rpc(service.url, method, params);
  const result = async <T>(method: string, ...params: readonly unknown[]): Promise<T> => {
    const { body } = await ask(method, ...params);
    assert.equal(body.error, undefined, `${method}: ${JSON.stringify(body.error)}`);
    return body.result as T;
  };
  return {
    ...{ devnet, token, service, ask, result },
    /** Sends the next message, and waits for the view with all its transactions executed. */
    step: async (): Promise<FeedBlock> => {
      const { diff } = await devnet.step();
      for (;;) {
        const answer = await ask("eth_getBlockByNumber", "pending", false);
        const block = answer.body.result as FeedBlock;
        if (block.hash === diff.block_hash && answer.headers.get("x-forebay-pending") === "live") {
          return block;
        }
      }
    },
    /** Signs a transaction with the account's next nonce. */
    sign: async (account: (typeof devAccounts)[number] | undefined, fields: object): Promise<`0x${string}`> => {
      assert.ok(account);
      const nonce = Number(await result("eth_getTransactionCount", account.address, "pending"));
      const fees = { maxFeePerGas: 20n * 10n ** 9n, maxPriorityFeePerGas: 1_000_000n };
      return account.signTransaction({
        ...{ type: "eip1559", chainId: devnet.chainId, nonce, gas: 200_000n },
        ...fees,
        ...fields,
      });
    },
    close: async (): Promise<void> => {
      await service.close();
      await devnet.close();
    },
  };
};
