import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import type { HeadChange, Heads, RingBlock } from "../../src/core/heads.ts";
import type { PendingExtension } from "../../src/core/view.ts";
import { type Address, formatQuantity, type Hash } from "../../src/ethereum/hex.ts";
import { createCall } from "../../src/jsonrpc/call.ts";
import { unavailable } from "../../src/jsonrpc/rpcError.ts";
import type { Subscriber } from "../../src/subscriptions/subscriber.ts";
import { createSubscriptions } from "../../src/subscriptions/subscriptions.ts";
import { createTelemetry } from "../../src/telemetry/telemetry.ts";
import { createHeads, hashOf } from "../support/builders/heads.ts";
import {
  createPendingBlock,
  createPendingSource,
  type FakeTransaction,
  hashOfName,
} from "../support/builders/pendingBlock.ts";

const TOKEN: Address = `0x${"aa".repeat(20)}`;
const OTHER: Address = `0x${"bb".repeat(20)}`;
const topic = (at: number): Hash => `0x${at.toString(16).padStart(64, "0")}`;
const bloom = new Uint8Array(256).fill(255);
const transaction = (name: string, address = TOKEN, topics: readonly Hash[] = []): FakeTransaction => ({
  name,
  logs: [{ address, topics }],
});

/** Subscriptions of one chain, with heads, view and node in the test's hand. */
const createRig = () => {
  const listeners = new Set<(change: HeadChange) => void>();
  const pending = createPendingSource();
  /** Results by method and first parameter's hash. */
  const results = new Map<string, unknown>();
  const asked: string[] = [];
  const telemetry = createTelemetry({ level: "silent" });
  let heads: Heads = createHeads({ latest: 10n });
  let failures = 0;
  const read = async (method: string, [first]: readonly unknown[]) => {
    const key = `${method} ${typeof first === "object" && first !== null && "blockHash" in first ? first.blockHash : first}`;
    asked.push(key);
    if (failures > 0) {
      failures--;
      throw unavailable("the node is down");
    }
    return Buffer.from(JSON.stringify(results.get(key) ?? []));
  };
  const subscriptions = createSubscriptions({
    chain: "chain",
    heads: {
      current: () => heads,
      markActive: () => {},
      subscribe: (listener) => {
        listeners.add(listener);
        return () => listeners.delete(listener);
      },
    },
    pending,
    pool: { subscribe: () => Promise.reject(unavailable("none")) },
    read,
    nodePending: { isServing: () => true, read },
    limits: { maxAddresses: 10, maxTopics: 10 },
    maxSubscriptions: 10,
    telemetry,
  });
  const closed: string[] = [];
  const waiting = new Set<() => void>();
  const messages: { params: { subscription: string; result: unknown } }[] = [];
  const subscriber: Subscriber = {
    subscriptions: new Map(),
    isOpen: true,
    notify: (fragments) => {
      messages.push(JSON.parse(Buffer.concat(fragments).toString()));
      for (const listener of waiting) {
        listener();
      }
    },
    close: (code, reason) => closed.push(`${code} ${reason}`),
  };

  return {
    pending,
    results,
    asked,
    closed,
    /** Resolves when so many messages were sent. */
    told: (count: number) =>
      new Promise<void>((resolve) => {
        const look = () => messages.length >= count && resolve();
        waiting.add(look);
        look();
      }),
    fail: (count: number) => {
      failures = count;
    },
    subscribe: async (...params: readonly unknown[]) => {
      const begin: (() => void)[] = [];
      const context = {
        view: { heads },
        signal: new AbortController().signal,
        deadlineMs: 0,
        clientId: "",
        bypassCache: false,
        subscriber,
        onAnswered: (then: () => void) => begin.push(then),
      };
      const reply = await subscriptions.lookup("eth_subscribe")?.(createCall("eth_subscribe", params), context);
      const id = reply?.body instanceof Uint8Array ? JSON.parse(Buffer.from(reply.body).toString()) : "";
      for (const then of begin) {
        then();
      }
      return () =>
        messages.filter(({ params: { subscription } }) => subscription === id).map(({ params: { result } }) => result);
    },
    /** A new head; `from` is how many blocks it replaces. */
    head: async (latest: bigint, { fork = 0, from = 0, missed = 0n } = {}) => {
      const before = heads;
      const replaced: RingBlock[] = [];
      for (let at = before.latest.number - BigInt(from) + 1n; from > 0 && at <= before.latest.number; at++) {
        const block = before.at(at);
        if (block) {
          replaced.push(block);
        }
      }
      const first = (replaced[0]?.number ?? before.latest.number + 1n) + missed;
      const next = createHeads({ latest, fork, forkedAt: fork === 0 ? latest + 1n : first });
      const at = (number: bigint) => {
        const block = next.at(number);
        return block && { ...block, logsBloom: bloom };
      };
      heads = {
        ...next,
        latest: at(latest) ?? next.latest,
        at,
        header: (number) => ({ number: formatQuantity(number) }),
      };
      const to: RingBlock[] = [];
      for (let number = first; number <= latest; number++) {
        const block = heads.at(number);
        if (block) {
          to.push(block);
        }
      }
      for (const listener of listeners) {
        listener({ heads, from: replaced, to });
      }
      await turn();
    },
    close: subscriptions.close,
  };
};

const rpcLog = (number: bigint, blockHash: Hash, name: string, logIndex: number, address = TOKEN) => ({
  address,
  topics: [],
  data: "0x",
  blockNumber: formatQuantity(number),
  blockHash,
  transactionHash: hashOfName(name),
  transactionIndex: "0x0",
  logIndex: formatQuantity(logIndex),
  removed: false,
});

const names = (results: readonly unknown[]) =>
  results.map((result) => {
    const { transactionHash, removed } = result as { transactionHash: Hash; removed: boolean };
    const name = ["one", "two", "three", "four"].find((each) => hashOfName(each) === transactionHash);
    return `${removed ? "-" : ""}${name}`;
  });

const extension = (
  block: PendingExtension["block"],
  fromTransaction: number,
  brings: PendingExtension["brings"] = "transactions",
): PendingExtension => ({ block, fromTransaction, toTransaction: block.transactionHashes.length, brings });

test("logs are read once per head, and a reorganisation removes them newest first before it adds new ones", async () => {
  const rig = createRig();
  const all = await rig.subscribe("logs", {});
  const some = await rig.subscribe("logs", { address: OTHER });
  rig.results.set(`eth_getLogs ${hashOf(11n)}`, [
    rpcLog(11n, hashOf(11n), "one", 0),
    rpcLog(11n, hashOf(11n), "two", 1, OTHER),
  ]);
  await rig.head(11n);
  const late = await rig.subscribe("logs", {});
  rig.results.set(`eth_getLogs ${hashOf(11n, 1)}`, [rpcLog(11n, hashOf(11n, 1), "three", 0)]);
  await rig.head(12n, { fork: 1, from: 1 });
  assert.deepEqual(names(all()), ["one", "two", "-two", "-one", "three"]);
  assert.deepEqual(names(some()), ["two", "-two"]);
  // A log that was never sent is not retracted.
  assert.deepEqual(names(late()), ["three"]);
  assert.deepEqual(
    rig.asked,
    [hashOf(11n), hashOf(11n, 1), hashOf(12n, 1)].map((hash) => `eth_getLogs ${hash}`),
  );
  rig.close();
});

test("logs of a failing node are retried, and the order of the blocks is preserved", async () => {
  const rig = createRig();
  const all = await rig.subscribe("logs", {});
  rig.results.set(`eth_getLogs ${hashOf(11n)}`, [rpcLog(11n, hashOf(11n), "one", 0)]);
  rig.results.set(`eth_getLogs ${hashOf(12n)}`, [rpcLog(12n, hashOf(12n), "two", 0)]);
  rig.fail(1);
  await rig.head(12n);
  assert.deepEqual(all(), []);
  await rig.told(2);
  assert.deepEqual(names(all()), ["one", "two"]);
  rig.close();
});

test("missed blocks close the connections of subscribers", async () => {
  const rig = createRig();
  await rig.subscribe("newHeads");
  await rig.head(11n);
  assert.deepEqual(rig.closed, []);
  await rig.head(20n, { missed: 5n });
  assert.deepEqual(rig.closed, ["1013 5 blocks were missed"]);
  rig.close();
});

test("pendingLogs sends each log once, with its message, and the sealed block repeats none", async () => {
  const rig = createRig();
  const logs = await rig.subscribe("pendingLogs", { address: TOKEN });
  const first = createPendingBlock(11n, 1, [transaction("one"), transaction("two", OTHER)]);
  rig.pending.emit({ extended: [extension(first, 0)] });
  const second = createPendingBlock(11n, 2, [transaction("one"), transaction("two", OTHER), transaction("three")]);
  rig.pending.emit({ extended: [extension(second, 2)] });
  assert.deepEqual(names(logs()), ["one", "three"]);
  rig.results.set(`eth_getLogs ${hashOf(11n)}`, [
    rpcLog(11n, hashOf(11n), "one", 0),
    rpcLog(11n, hashOf(11n), "two", 1, OTHER),
    rpcLog(11n, hashOf(11n), "three", 2),
    rpcLog(11n, hashOf(11n), "four", 3),
  ]);
  await rig.head(11n);
  // The feed did not send the last one: it is sent with the block.
  assert.deepEqual(names(logs()), ["one", "three", "four"]);
  rig.close();
});

test("pendingLogs removes a log that is not sealed once, whichever source reports it", async () => {
  const rig = createRig();
  const logs = await rig.subscribe("pendingLogs");
  const block = createPendingBlock(11n, 1, [transaction("one"), transaction("two")]);
  rig.pending.emit({ extended: [extension(block, 0)] });
  rig.results.set(`eth_getLogs ${hashOf(11n)}`, [rpcLog(11n, hashOf(11n), "one", 0)]);
  await rig.head(11n);
  const [, gone] = block.logs();
  assert.ok(gone);
  rig.pending.emit({ removed: [block.formatLog(gone, true)] });
  assert.deepEqual(names(logs()), ["one", "two", "-two"]);
  // The sealed block itself goes: what is still standing is taken back too.
  rig.results.set(`eth_getLogs ${hashOf(11n, 1)}`, [rpcLog(11n, hashOf(11n, 1), "three", 0)]);
  await rig.head(11n, { fork: 1, from: 1 });
  assert.deepEqual(names(logs()), ["one", "two", "-two", "-one", "three"]);
  rig.close();
});

test("pendingLogs removes the logs of a replaced message and sends those of the replacement", async () => {
  const rig = createRig();
  const logs = await rig.subscribe("pendingLogs");
  const before = createPendingBlock(11n, 1, [transaction("one")]);
  rig.pending.emit({ extended: [extension(before, 0)] });
  const after = createPendingBlock(11n, 1, [transaction("two"), transaction("one")]);
  const [log] = before.logs();
  assert.ok(log);
  rig.pending.emit({ removed: [before.formatLog(log, true)], extended: [extension(after, 0)] });
  assert.deepEqual(names(logs()), ["one", "-one", "two", "one"]);
  rig.close();
});

test("a pendingLogs subscription that begins inside a block gets the whole block when it is sealed", async () => {
  const rig = createRig();
  const early = await rig.subscribe("pendingLogs");
  const first = createPendingBlock(11n, 1, [transaction("one")]);
  rig.pending.emit({ extended: [extension(first, 0)] });
  const late = await rig.subscribe("pendingLogs");
  const second = createPendingBlock(11n, 2, [transaction("one"), transaction("two")]);
  rig.pending.emit({ extended: [extension(second, 1)] });
  rig.results.set(`eth_getLogs ${hashOf(11n)}`, [
    rpcLog(11n, hashOf(11n), "one", 0),
    rpcLog(11n, hashOf(11n), "two", 1),
  ]);
  await rig.head(11n);
  assert.deepEqual(names(early()), ["one", "two"]);
  assert.deepEqual(names(late()), ["two", "one"]);
  rig.close();
});

test("a filter of pre-confirmed transactions selects whole transactions with a matching log", async () => {
  const rig = createRig();
  const ofToken = await rig.subscribe("newFlashblockTransactions", { address: TOKEN, topics: [topic(1)] });
  const counted = await rig.subscribe("newFlashblockTransactions", { topics: [null, null] });
  const any = await rig.subscribe("newFlashblockTransactions", {});
  const whole = await rig.subscribe("newFlashblockTransactions", true);
  const silent: FakeTransaction = { name: "three", logs: [] };
  const both: FakeTransaction = {
    name: "one",
    logs: [
      { address: OTHER, topics: [] },
      { address: TOKEN, topics: [topic(1), topic(2)] },
      { address: TOKEN, topics: [topic(1)] },
    ],
  };
  const late = { ...transaction("two", TOKEN, [topic(1)]), isLate: true };
  rig.pending.emit({ extended: [extension(createPendingBlock(11n, 1, [both, late, silent]), 0)] });
  const hashes = (results: readonly unknown[]) => results.map((result) => (result as { hash: Hash }).hash);
  assert.deepEqual(hashes(ofToken()), [hashOfName("one")]);
  assert.equal((ofToken()[0] as { logs: unknown[] }).logs.length, 3);
  assert.deepEqual(hashes(counted()), [hashOfName("one")]);
  assert.deepEqual(hashes(any()), [hashOfName("one")]);
  assert.deepEqual(hashes(whole()), [hashOfName("one"), hashOfName("three")]);
  // Late transactions, and transactions that the feed never sent, are sent with the sealed block.
  const sealedLog = { ...rpcLog(11n, hashOf(11n), "four", 4), topics: [topic(1)] };
  rig.results.set(`eth_getBlockByHash ${hashOf(11n)}`, {
    transactions: ["one", "two", "three", "four"].map((name) => ({ hash: hashOfName(name) })),
  });
  rig.results.set(`eth_getBlockReceipts ${hashOf(11n)}`, [
    { transactionHash: hashOfName("two"), logs: [{ ...sealedLog, address: OTHER }] },
    { transactionHash: hashOfName("four"), logs: [{ ...sealedLog, address: TOKEN.toUpperCase().replace("X", "x") }] },
  ]);
  await rig.head(11n);
  await rig.told(10);
  assert.deepEqual(hashes(ofToken()), [hashOfName("one"), hashOfName("four")]);
  assert.deepEqual(hashes(counted()), [hashOfName("one")]);
  assert.deepEqual(hashes(any()), ["one", "two", "four"].map(hashOfName));
  assert.deepEqual(hashes(whole()), ["one", "three", "two", "four"].map(hashOfName));
  await assert.rejects(rig.subscribe("newFlashblockTransactions", { topics: [7] }), { code: -32602 });
  await assert.rejects(rig.subscribe("newFlashblockTransactions", "all"), { code: -32602 });
  rig.close();
});

test("pre-confirmed blocks and transactions are sent once, whole transactions when their logs are known", async () => {
  const rig = createRig();
  const blocks = await rig.subscribe("newFlashblocks");
  const hashes = await rig.subscribe("newFlashblockTransactions");
  const whole = await rig.subscribe("newFlashblockTransactions", true);
  const late = createPendingBlock(11n, 1, [{ ...transaction("one", TOKEN, [topic(1)]), isLate: true }]);
  rig.pending.emit({ extended: [extension(late, 0)] });
  assert.deepEqual(hashes(), [hashOfName("one")]);
  assert.deepEqual(whole(), []);
  const known = createPendingBlock(11n, 1, [transaction("one", TOKEN, [topic(1)])]);
  rig.pending.emit({ extended: [extension(known, 0, "logs")] });
  assert.deepEqual(hashes(), [hashOfName("one")]);
  const [given] = whole() as { hash: Hash; blockHash: null; status: string; logs: unknown[] }[];
  assert.equal(given?.hash, hashOfName("one"));
  assert.equal(given?.blockHash, null);
  assert.equal(given?.status, "0x1");
  assert.equal(given?.logs.length, 1);
  assert.equal(blocks().length, 2);
  rig.results.set(`eth_getBlockByHash ${hashOf(11n)}`, { transactions: [{ hash: hashOfName("one") }] });
  await rig.head(11n);
  assert.equal(hashes().length + whole().length + blocks().length, 4);
  rig.close();
});

test("in native mode sealed blocks feed the same subscriptions", async () => {
  const rig = createRig();
  const blocks = await rig.subscribe("newFlashblocks");
  const hashes = await rig.subscribe("newFlashblockTransactions", false);
  const whole = await rig.subscribe("newFlashblockTransactions", true);
  const logs = await rig.subscribe("pendingLogs");
  const log = rpcLog(11n, hashOf(11n), "one", 0);
  const block = { hash: hashOf(11n), transactions: [{ hash: hashOfName("one"), value: "0x1" }] };
  rig.results.set(`eth_getBlockByHash ${hashOf(11n)}`, block);
  rig.results.set(`eth_getLogs ${hashOf(11n)}`, [log]);
  rig.results.set(`eth_getBlockReceipts ${hashOf(11n)}`, [
    { transactionHash: hashOfName("one"), status: "0x1", logs: [log] },
  ]);
  await rig.head(11n);
  await turn();
  assert.deepEqual(blocks(), [block]);
  assert.deepEqual(hashes(), [hashOfName("one")]);
  assert.deepEqual(whole(), [{ hash: hashOfName("one"), value: "0x1", logs: [log], status: "0x1" }]);
  assert.deepEqual(names(logs()), ["one"]);
  rig.close();
});

test("a node's pending block is polled while there are subscriptions, and the sealed block sends only the rest", async (context) => {
  context.mock.timers.enable({ apis: ["setInterval"] });
  const rig = createRig();
  const look = async () => {
    context.mock.timers.tick(200);
    await turn();
  };
  await look();
  assert.deepEqual(rig.asked, []);
  const logs = await rig.subscribe("pendingLogs");
  const hashes = await rig.subscribe("newFlashblockTransactions");
  const blocks = await rig.subscribe("newFlashblocks");
  const log = (name: string, index: number) => rpcLog(11n, hashOf(11n), name, index);
  const block = (...named: string[]) => ({
    number: "0xb",
    transactions: named.map((name) => ({ hash: hashOfName(name) })),
  });
  rig.results.set("eth_getLogs [object Object]", [log("one", 0)]);
  rig.results.set("eth_getBlockByNumber pending", block("one"));
  await look();
  await look();
  rig.results.set("eth_getLogs [object Object]", [log("one", 0), log("two", 1)]);
  rig.results.set("eth_getBlockByNumber pending", block("one", "two"));
  await look();
  assert.deepEqual(names(logs()), ["one", "two"]);
  assert.deepEqual(hashes(), [hashOfName("one"), hashOfName("two")]);
  assert.equal(blocks().length, 2);
  rig.results.set(`eth_getLogs ${hashOf(11n)}`, [log("one", 0), log("three", 1)]);
  rig.results.set(`eth_getBlockByHash ${hashOf(11n)}`, block("one", "three"));
  await rig.head(11n);
  assert.deepEqual(names(logs()), ["one", "two", "-two", "three"]);
  assert.deepEqual(hashes(), [hashOfName("one"), hashOfName("two"), hashOfName("three")]);
  // A block that is not above the head is not pending.
  await look();
  assert.equal(blocks().length, 2);
  rig.close();
});
