import { setImmediate as turn } from "node:timers/promises";
import { Context, NOT_RECEIVED, type Subscriber } from "../../src/core/context.ts";
import type { HeadChange, Heads, RingBlock } from "../../src/core/heads.ts";
import type { PendingExtension } from "../../src/core/view.ts";
import { type Address, formatQuantity, type Hash } from "../../src/ethereum/hex.ts";
import { createCall } from "../../src/jsonrpc/call.ts";
import { unavailable } from "../../src/jsonrpc/rpcError.ts";
import { Deliveries } from "../../src/subscriptions/deliveries.ts";
import { Subscriptions } from "../../src/subscriptions/subscriptions.ts";
import { createTelemetry } from "../../src/telemetry/telemetry.ts";
import { createHeads } from "../support/builders/heads.ts";
import { createPendingSource, type FakeTransaction, hashOfName } from "../support/builders/pendingBlock.ts";
import { createInbound } from "../support/builders/request.ts";

export const TOKEN: Address = `0x${"aa".repeat(20)}`;

export const OTHER: Address = `0x${"bb".repeat(20)}`;

export const topic = (at: number): Hash => `0x${at.toString(16).padStart(64, "0")}`;

const bloom = new Uint8Array(256).fill(255);

export const transaction = (name: string, address = TOKEN, topics: readonly Hash[] = []): FakeTransaction => ({
  name,
  logs: [{ address, topics }],
});

/** Subscriptions of one chain, with heads, view and node in the test's hand. */
export const createRig = () => {
  const listeners = new Set<(change: HeadChange) => void>();
  const pending = createPendingSource();
  /** Results by method and first parameter's hash. An error is thrown. */
  const results = new Map<string, unknown>();
  const asked: string[] = [];
  const whenAsked = new Set<() => void>();
  /** Reads that do not end before their promise. */
  const held = new Map<string, Promise<void>>();
  const telemetry = createTelemetry({ level: "silent" });
  let heads: Heads = createHeads({ latest: 10n });
  let failures = 0;
  const read = async (method: string, [first]: readonly unknown[]) => {
    const key = `${method} ${typeof first === "object" && first !== null && "blockHash" in first ? first.blockHash : first}`;
    asked.push(key);
    for (const listener of whenAsked) {
      listener();
    }
    await held.get(key);
    if (failures > 0) {
      failures--;
      throw unavailable("the node is down");
    }
    const result = results.get(key) ?? [];
    if (result instanceof Error) {
      throw result;
    }
    return Buffer.from(JSON.stringify(result));
  };
  /** Raw transactions that were sent. */
  const sent: string[] = [];
  const submit = async (raw: string): Promise<Hash> => {
    sent.push(raw);
    return hashOfName(raw);
  };
  const followed = {
    current: () => heads,
    subscribe: (listener: (change: HeadChange) => void) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
  const subscriptions = new Subscriptions({
    chain: "chain",
    heads: { ...followed, markActive: () => {} },
    provenSource: () => ({ heads: followed, read }),
    pending,
    pool: { subscribe: () => Promise.reject(unavailable("none")) },
    read,
    nodePending: { isServing: () => true, read },
    limits: { maxAddresses: 10, maxTopics: 10 },
    maxSubscriptions: 10,
    maxBytesPerClient: 1_000_000,
    deliveries: new Deliveries(telemetry.log, Number.POSITIVE_INFINITY),
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

  const subscribe = async (params: readonly unknown[], isProven: boolean) => {
    const begin: (() => void)[] = [];
    const inbound = createInbound({
      received: { ...NOT_RECEIVED, subscriber },
      afterResponse: (then) => begin.push(then),
    });
    const context = new Context(inbound, { heads }, 0, { needs: isProven ? "proven" : "stated" });
    const reply = await subscriptions.subscribe(createCall("eth_subscribe", params), context, submit);
    const id = reply?.body instanceof Uint8Array ? JSON.parse(Buffer.from(reply.body).toString()) : "";
    for (const then of begin) {
      then();
    }
    return () =>
      messages.filter(({ params: { subscription } }) => subscription === id).map(({ params: { result } }) => result);
  };

  return {
    pending,
    results,
    asked,
    sent,
    closed,
    /** Resolves when this number of messages was sent. */
    sentCount: (count: number) =>
      new Promise<void>((resolve) => {
        const look = () => messages.length >= count && resolve();
        waiting.add(look);
        look();
      }),
    /** Resolves when a read was asked for this number of times: those before were refused. */
    askedTimes: (key: string, times: number) =>
      new Promise<void>((resolve) => {
        whenAsked.add(() => asked.filter((each) => each === key).length >= times && resolve());
      }),
    /** Calls the function whenever a message was sent. */
    whenSent: (act: () => void) => waiting.add(act),
    /** Holds a read until the returned function is called. */
    hold: (key: string): (() => void) => {
      const { promise, resolve } = Promise.withResolvers<void>();
      held.set(key, promise);
      return resolve;
    },
    fail: (count: number) => {
      failures = count;
    },
    subscribe: (...params: readonly unknown[]) => subscribe(params, false),
    /** Subscribes to proven events. */
    subscribeProven: (...params: readonly unknown[]) => subscribe(params, true),
    /** A new head; `from` is how many blocks it replaces. `isEmpty`: by their blooms, its blocks have no logs. */
    head: async (latest: bigint, { fork = 0, from = 0, missed = 0n, finalized = 0n, isEmpty = false } = {}) => {
      const before = heads;
      const replaced: RingBlock[] = [];
      for (let at = before.latest.number - BigInt(from) + 1n; from > 0 && at <= before.latest.number; at++) {
        const block = before.at(at);
        if (block) {
          replaced.push(block);
        }
      }
      const first = (replaced[0]?.number ?? before.latest.number + 1n) + missed;
      const next = createHeads({ latest, finalized, fork, forkedAt: fork === 0 ? latest + 1n : first });
      const at = (number: bigint) => {
        const block = next.at(number);
        return block && { ...block, logsBloom: isEmpty ? block.logsBloom : bloom };
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
    openCount: () => subscriber.subscriptions.size,
    /** Ends every subscription. */
    endAll: () => {
      for (const end of [...subscriber.subscriptions.values()]) {
        end();
      }
    },
    close: () => subscriptions.close(),
  };
};

export const rpcLog = (number: bigint, blockHash: Hash, name: string, logIndex: number, address = TOKEN) => ({
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

export const names = (results: readonly unknown[]) =>
  results.map((result) => {
    const { transactionHash, removed } = result as { transactionHash: Hash; removed: boolean };
    const name = ["one", "two", "three", "four"].find((each) => hashOfName(each) === transactionHash);
    return `${removed ? "-" : ""}${name}`;
  });

export const extension = (
  block: PendingExtension["block"],
  fromTransaction: number,
  kind: PendingExtension["kind"] = "transactions",
): PendingExtension => ({ block, fromTransaction, toTransaction: block.transactionHashes.length, kind });
