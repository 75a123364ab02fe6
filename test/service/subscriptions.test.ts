import assert from "node:assert/strict";
import { once } from "node:events";
import { after, before, test } from "node:test";
import { Log, WebSocketProvider } from "ethers";
import { createPublicClient, webSocket } from "viem";
import { createDevnet, type Devnet } from "../devnet/devnet.ts";
import { startTraffic } from "../devnet/traffic.ts";
import { type BookedLog, createLogBook, keysFrom, logKey } from "../support/clients/logBook.ts";
import { until } from "../support/clients/until.ts";
import { createService, type Service } from "../support/servers/service.ts";

let devnet: Devnet;
let service: Service;

before(async () => {
  devnet = await createDevnet({ blockTimeMs: 400, flashblockMs: 100 });
  service = await createService({
    nodes: [{ url: devnet.url, wsUrl: devnet.anvilWsUrl }],
    pending: { feeds: devnet.feedUrl === undefined ? [] : [devnet.feedUrl] },
    quirks: { anvilDepositNonce: true },
  });
});
after(async () => {
  await service?.close();
  await devnet?.close();
});

interface Block {
  readonly number: string;
  readonly hash: string;
  readonly transactions: readonly string[];
}
const blockAt = async (number: number | "latest") => {
  const tag = typeof number === "number" ? `0x${number.toString(16)}` : number;
  return (await devnet.rpc("eth_getBlockByNumber", tag, false)) as Block;
};

interface Receipt {
  readonly transactionHash: string;
  readonly blockHash: string;
  readonly gasUsed: string;
  readonly logs: readonly unknown[];
}

const textOf = ({ transactionHash, blockHash, gasUsed, logs }: Receipt): string =>
  `${blockHash} ${transactionHash} ${Number(gasUsed)} ${logs.length}`;

/** The lists of `transactionReceipts`, by block hash. */
const createReceiptBook = () => {
  const lists = new Map<string, readonly string[]>();
  const doubled: string[] = [];
  return {
    lists,
    doubled,
    add: (list: readonly Receipt[]) => {
      const [{ blockHash } = { blockHash: "none" }] = list;
      if (lists.has(blockHash)) {
        doubled.push(blockHash);
      }
      lists.set(blockHash, list.map(textOf));
    },
  };
};

/** The last hash that was sent, by number. */
const createChainBook = () => {
  const hashes = new Map<number, string>();
  const doubled: string[] = [];
  const delivered = new Set<string>();
  return {
    hashes,
    doubled,
    add: (number: number, hash: string) => {
      if (delivered.has(hash)) {
        doubled.push(hash);
      }
      delivered.add(hash);
      hashes.set(number, hash);
    },
  };
};

/** Each block of the range that has transactions was sent, with the receipts of the node. */
const assertReceipts = async (
  { lists, doubled }: ReturnType<typeof createReceiptBook>,
  first: number,
  latest: number,
): Promise<void> => {
  let sent = 0;
  for (let number = first; number <= latest; number++) {
    const { hash } = await blockAt(number);
    const expected = ((await devnet.rpc("eth_getBlockReceipts", hash)) as readonly Receipt[]).map(textOf);
    if (expected.length > 0) {
      await until(() => lists.has(hash), `receipts of block ${number}`);
      assert.deepEqual(lists.get(hash), expected);
      sent++;
    }
  }
  assert.ok(sent > 2, `${sent} blocks with receipts`);
  assert.deepEqual(doubled, []);
};

test("viem and ethers receive each block, event, receipt and pending log once, through a node restart and a reorganisation", async () => {
  const url = service.url.replace("http:", "ws:");
  const viem = createPublicClient({ transport: webSocket(url) });
  const ethers = new WebSocketProvider(url, devnet.chainId, { staticNetwork: true });
  const traffic = await startTraffic({ url: devnet.url, chainId: devnet.chainId, rate: 20, kinds: ["token"] });
  const books = { viem: createLogBook(), ethers: createLogBook(), pending: createLogBook() };
  const blocks = createChainBook();
  const heads = createChainBook();
  const receipts = createReceiptBook();
  const numbers: number[] = [];
  const unwatch = [
    viem.watchEvent({ onLogs: (logs) => logs.forEach(books.viem.add) }),
    viem.watchBlocks({ onBlock: ({ number, hash }) => blocks.add(Number(number), hash) }),
  ];
  const pendingFeed = await viem.transport.getRpcClient();
  // viem reads the block of each head by its number: it reports a block twice that replaced the one of a head meanwhile.
  pendingFeed.request({
    body: { method: "eth_subscribe", params: ["newHeads"] },
    onResponse: (message) => {
      if (message.method === "eth_subscription") {
        heads.add(Number(message.params.result.number), message.params.result.hash);
      }
    },
  });
  pendingFeed.request({
    body: { method: "eth_subscribe", params: ["transactionReceipts", {}] },
    onResponse: (message) => {
      if (message.method === "eth_subscription") {
        receipts.add(message.params.result);
      }
    },
  });
  pendingFeed.request({
    body: { method: "eth_subscribe", params: ["pendingLogs", {}] },
    onResponse: (message) => {
      if (message.method === "eth_subscription") {
        books.pending.add(message.params.result);
      }
    },
  });
  const bookEthers = (log: Log) => {
    books.ethers.add({ ...log, logIndex: log.index });
    // ethers reports a removed log only to listeners of that log.
    const removed = new Log({ ...log, removed: true }, ethers);
    if (!log.removed) {
      void ethers.once({ orphan: "drop-log", log: removed }, bookEthers);
    }
  };
  await ethers.on({ topics: [] }, bookEthers);
  await ethers.on("block", (number: number) => numbers.push(number));
  try {
    // All subscriptions are active two blocks later.
    const first = Number((await blockAt("latest")).number) + 2;
    await until(() => blocks.hashes.has(first + 2) && books.pending.keys.size > 0, "blocks");

    await devnet.stopNode();
    await devnet.startNode();
    await once(devnet.events, "sealed");
    await devnet.reorg(2);
    await once(devnet.events, "sealed");
    await once(devnet.events, "sealed");
    await traffic.stop();
    await once(devnet.events, "sealed");
    devnet.pauseSealing();

    const latest = Number((await blockAt("latest")).number);
    const logs = (await devnet.rpc("eth_getLogs", { fromBlock: `0x${first.toString(16)}` })) as BookedLog[];
    const expected = logs.map(logKey).sort();
    assert.ok(expected.length > 10);
    for (const [name, book] of Object.entries(books)) {
      const sealed = () => keysFrom(book.keys, first).filter((key) => Number(key.split(":", 1)[0]) <= latest);
      await until(() => sealed().length === expected.length, `logs of ${name}`).catch(() => {});
      assert.deepEqual(sealed(), expected, name);
      assert.deepEqual(book.faults, [], name);
    }
    assert.ok(books.viem.taken + books.ethers.taken > 0, "the reorganisation took logs back");
    for (let number = first; number <= latest; number++) {
      const { hash } = await blockAt(number);
      // The clients read a block once they have its head.
      await until(() => blocks.hashes.get(number) === hash, `block ${number}`);
      await until(() => numbers.includes(number), `block ${number} of ethers`);
    }
    await assertReceipts(receipts, first, latest);
    assert.deepEqual(heads.doubled, []);
    assert.ok(heads.hashes.size >= latest - first, `${heads.hashes.size} heads`);
  } finally {
    for (const stop of unwatch) {
      stop();
    }
    pendingFeed.close();
    await ethers.destroy();
    await traffic.stop();
  }
});
