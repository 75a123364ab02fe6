import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Address } from "viem";
import { createDevnet } from "../devnet/devnet.ts";
import { createRpcFront } from "../devnet/rpcFront.ts";
import { devAccounts, recipientOf, startTraffic } from "../devnet/traffic.ts";
import { forwardTo } from "../support/fakes/front.ts";
import { startCountedNode } from "./countedNode.ts";
import { type Totals, totalsOf } from "./figures.ts";
import { startFollower } from "./followerNode.ts";
import { startHistoryNode } from "./historyNode.ts";
import type { Ports } from "./ports.ts";
import { startService } from "./service.ts";
import { startWallets } from "./wallets.ts";

/** All that the demo runs. */
export interface Stack {
  readonly chainId: number;
  /** URL of the chain that wallets read. */
  readonly url: string;
  /** URL of the chain with a long history, and of its node. */
  readonly historyUrl: string;
  readonly historyNodeUrl: string;
  readonly statusUrl: string;
  readonly opsUrl: string;
  readonly token: Address;
  /** The reason of the last failed call of a wallet. */
  lastFailure(): string | undefined;
  totals(): Totals;
  /** Calls that reached the node with a long chain. */
  historyCalls(): number;
  /** Kills the node that answers everything. Resolves to the function that starts it again. */
  killNode(): Promise<() => Promise<void>>;
  /** Restarts forebay. Wallets wait until it is ready, as behind a load balancer. */
  restart(): Promise<void>;
  close(): Promise<void>;
}

export interface StackOptions {
  readonly ports: Ports;
  /** Transactions a second. */
  readonly rate: number;
}

type End = () => unknown;

/** The node's state is not changed by its own methods here. So forebay may follow it, unlike that of a development node. */
const CLIENT_VERSION = "devnet/v1";
const KEPT_STATES = 300;
/** Slower than on public chains, for machines that do more than this. */
const FLASHBLOCK_MS = 400;
const RECIPIENTS = 90;
/** Mostly transfers of a token, as on public chains. */
const KINDS = ["token", "transfer", "token", "store", "token", "revert"] as const;

/** Starts the nodes of the demo. */
const startNodes = async (ends: End[]) => {
  const devnet = await createDevnet({
    network: "ethereum",
    clientVersion: CLIENT_VERSION,
    keptStates: KEPT_STATES,
    flashblockMs: FLASHBLOCK_MS,
  });
  ends.push(devnet.close);
  // A stack that ends, or a machine that is too slow: the next block begins again.
  devnet.events.on("error", () => undefined);
  const follower = await startFollower(devnet);
  ends.push(follower.close);
  const versions = new Map([["web3_clientVersion", async () => CLIENT_VERSION]]);
  const named = await createRpcFront(versions, follower.post);
  ends.push(named.close);
  const own = await startCountedNode(async (body) => (await forwardTo(named.url, body)).text);
  ends.push(own.close);
  const backup = await startCountedNode(async (body) => (await forwardTo(devnet.url, body)).text);
  ends.push(backup.close);
  const historyNode = await startHistoryNode();
  ends.push(historyNode.close);
  const history = await startCountedNode(async (body) => (await forwardTo(historyNode.url, body)).text);
  ends.push(history.close);
  return { devnet, follower, own, backup, history };
};

const startAll = async ({ ports, rate }: StackOptions, ends: End[]): Promise<Omit<Stack, "close">> => {
  const folder = mkdtempSync(join(tmpdir(), "forebay-demo-"));
  const remove = () => rmSync(folder, { recursive: true, force: true });
  process.once("exit", remove);
  ends.push(remove);
  const { devnet, follower, own, backup, history } = await startNodes(ends);
  const service = await startService({
    ...{ ownUrl: own.url, backupUrl: backup.url, feedUrl: devnet.feedUrl ?? "", historyUrl: history.url },
    ...{ ports, dataDir: join(folder, "data") },
  });
  ends.push(service.close);
  const { chainId } = devnet;
  const traffic = await startTraffic({ url: devnet.url, chainId, rate, kinds: KINDS });
  ends.push(traffic.stop);
  const url = `${service.url}/devnet`;
  const addresses = [
    ...devAccounts.map(({ address }) => address),
    ...Array.from({ length: RECIPIENTS }, (_, at) => recipientOf(at)),
  ];
  const wallets = startWallets({ url, addresses, token: traffic.token });
  ends.push(wallets.stop);
  return {
    ...{ chainId, url, token: traffic.token, historyUrl: `${service.url}/history`, historyNodeUrl: history.url },
    ...{ statusUrl: service.url, opsUrl: service.opsUrl },
    lastFailure: () => wallets.lastFailure,
    totals: () => totalsOf(wallets.calls, [own.calls, backup.calls], wallets.failed),
    historyCalls: () => history.calls.values().reduce((sum, count) => sum + count, 0),
    killNode: async () => {
      const [listen] = await Promise.all([own.stop(), follower.kill()]);
      return async () => {
        await follower.revive();
        await listen();
      };
    },
    restart: () => wallets.pausedDuring(service.restart),
  };
};

/** Starts everything. `close` ends all of it, and removes its folder. If a part does not start, the others are ended. */
export const startStack = async (options: StackOptions): Promise<Stack> => {
  const ends: End[] = [];
  const close = async (): Promise<void> => {
    const errors: unknown[] = [];
    for (const end of ends.splice(0).reverse()) {
      await Promise.resolve(end()).catch((error: unknown) => errors.push(error));
    }
    if (errors.length > 0) {
      throw errors[0];
    }
  };
  try {
    return { ...(await startAll(options, ends)), close };
  } catch (error) {
    await close();
    throw error;
  }
};
