import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { type LogFilter, matchesLog, parseLogQuery } from "../../src/ethereum/logFilter.ts";
import { createDevnet, type Devnet, type DevnetOptions } from "../devnet/devnet.ts";
import type { Flashblock } from "../devnet/flashblock.ts";
import type { SealedBlock } from "../devnet/sequencer.ts";
import { startTraffic } from "../devnet/traffic.ts";
import { type BookedLog, createLogBook, keysFrom, type LogBook, logKey } from "../support/clients/logBook.ts";
import { rpc } from "../support/clients/rpc.ts";
import { connectSocket } from "../support/clients/socketClient.ts";
import { until } from "../support/clients/until.ts";
import { createService, type Service } from "../support/servers/service.ts";

const FILTERS = 200;
const RATE = 30;
const SECONDS = 120;
const WARM_MS = 4_000;
const SETTLE_MS = 3_000;
/** Blocks that the next requests reach back, because an event may arrive before forebay has its message. */
const OVERLAP_BLOCKS = 5;
const LIMITS = { maxAddresses: 1_000, maxTopics: 1_000 };

interface Variant {
  readonly name: string;
  readonly devnet: DevnetOptions;
  readonly isNative: boolean;
}

const VARIANTS: readonly Variant[] = [
  { name: "feed, receipts in the metadata", devnet: { generation: "a" }, isNative: false },
  { name: "feed, nothing in the metadata", devnet: { generation: "f", encoding: "brotli" }, isNative: false },
  { name: "native, blocks of 200 ms", devnet: { blockTimeMs: 200, flashblockMs: 200, feed: false }, isNative: true },
];

interface RpcLog extends BookedLog {
  readonly address: string;
  readonly topics: readonly string[];
}

const logsSince = async (url: string, from: string): Promise<readonly RpcLog[]> => {
  const { body } = await rpc(url, "eth_getLogs", [{ fromBlock: from, toBlock: "pending" }]);
  return Array.isArray(body.result) ? body.result : [];
};

const pick = <T>(values: readonly T[]): T | undefined => values[Math.floor(Math.random() * values.length)];
const some = <T>(values: readonly T[], most: number): T[] =>
  Array.from({ length: Math.floor(Math.random() * (most + 1)) }, () => pick(values)).filter(
    (each) => each !== undefined,
  );

/** Creates a filter from values that were seen, so that many filters match some logs. */
const randomFilter = (logs: readonly RpcLog[]) => {
  const positions = [0, 1, 2].map((at) =>
    [...new Set(logs.map(({ topics }) => topics[at]))].filter((topic) => topic !== undefined),
  );
  const address = some([...new Set(logs.map((log) => log.address)), `0x${"de".repeat(20)}`], 2);
  const topics = positions.slice(0, Math.floor(Math.random() * 4)).map((seen) => {
    const alternatives = some(seen, 4);
    return alternatives.length === 0 ? null : alternatives;
  });
  return { ...(address.length > 0 && { address }), topics };
};

interface Watched {
  readonly filter: LogFilter;
  readonly book: LogBook;
}

/** Compares the events of one subscription with the matching logs of all blocks that were ever pending. */
const differenceOf = ({ filter, book }: Watched, union: ReadonlyMap<string, RpcLog>, from: number, to: number) => {
  const expected = [...union].filter(([, log]) => matchesLog(filter, log)).map(([key]) => key);
  const inside = (keys: Iterable<string>) => keysFrom(keys, from).filter((key) => Number(key.split(":", 1)[0]) <= to);
  const [wanted, received] = [new Set(inside(expected)), new Set(inside(book.keys))];
  return {
    wanted: wanted.size,
    lost: [...wanted].filter((key) => !received.has(key)).length,
    unasked: [...received].filter((key) => !wanted.has(key)).length,
    faults: book.faults.length,
  };
};

const runOn = async (devnet: Devnet, service: Service, seconds: number) => {
  const traffic = await startTraffic({ url: devnet.url, chainId: devnet.chainId, rate: RATE });
  const client = await connectSocket(service.url);
  const books = new Map<string, LogBook>();
  client.events.on("raw", (text: string) => {
    const { params } = JSON.parse(text);
    if (params === undefined) {
      return;
    }
    events++;
    if (Number(params.result.blockNumber) > sealed) {
      early++;
    }
    books.get(params.subscription)?.add(params.result);
  });
  const union = new Map<string, RpcLog>();
  const asking = new Set<Promise<void>>();
  let newest = 0;
  let sealed = 0;
  let events = 0;
  let early = 0;
  const ask = (number: number): void => {
    newest = Math.max(newest, number);
    const asked = logsSince(service.url, `0x${Math.max(0, number - OVERLAP_BLOCKS).toString(16)}`).then((logs) => {
      for (const log of logs) {
        union.set(logKey(log), log);
      }
    });
    asking.add(asked);
    void asked.finally(() => asking.delete(asked));
  };
  const onMessage = ({ metadata }: Flashblock): void => ask(Number(metadata.block_number));
  const onSealed = ({ number }: SealedBlock): void => {
    sealed = Number(number);
    ask(sealed);
  };
  devnet.events.on("message", onMessage).on("sealed", onSealed);
  try {
    await sleep(WARM_MS);
    const seen = [...union.values()];
    const watched: Watched[] = [];
    for (let at = 0; at < FILTERS; at++) {
      const filter = randomFilter(seen);
      const { result } = await client.call("eth_subscribe", "pendingLogs", filter);
      const book = createLogBook();
      books.set(String(result), book);
      watched.push({ filter: parseLogQuery(filter, LIMITS).filter, book });
    }
    const from = newest + 2;
    await sleep(seconds * 1_000);
    const matches = () => watched.some((each) => differenceOf(each, union, from, newest - 1).wanted > 0);
    await until(matches, "a log that a subscription wants");
    await traffic.stop();
    await once(devnet.events, "sealed");
    const to = newest - 1;
    await sleep(SETTLE_MS);
    devnet.events.off("message", onMessage).off("sealed", onSealed);
    await Promise.all(asking);
    const differences = watched.map((each) => differenceOf(each, union, from, to));
    const sum = (field: keyof (typeof differences)[number]) =>
      differences.reduce((total, each) => total + each[field], 0);
    return {
      blocks: to - from + 1,
      logs: keysFrom(union.keys(), from).length,
      filters: watched.length,
      matching: differences.filter(({ wanted }) => wanted > 0).length,
      wanted: sum("wanted"),
      lost: sum("lost"),
      unasked: sum("unasked"),
      faults: sum("faults"),
      deliveredBeforeSealed: Math.round((early / events) * 1_000) / 1_000,
    };
  } finally {
    await traffic.stop();
    await client.close();
  }
};

/** Compares, for random filters, the logs from pendingLogs with those from eth_getLogs at pending, over all blocks. */
export const long = async ({ seconds = SECONDS }: { readonly seconds?: number | undefined }) => {
  const variants: Record<string, unknown> = {};
  let passed = true;
  for (const { name, devnet: options, isNative } of VARIANTS) {
    await using devnet = await createDevnet(options);
    const service = await createService({
      nodes: [{ url: devnet.url, wsUrl: devnet.anvilWsUrl }],
      quirks: { anvilDepositNonce: true },
      pending: isNative ? { mode: "native" } : { feeds: devnet.feedUrl === undefined ? [] : [devnet.feedUrl] },
    });
    try {
      const result = await runOn(devnet, service, seconds / VARIANTS.length);
      variants[name] = result;
      passed &&= result.matching > 0 && result.lost + result.unasked + result.faults === 0;
    } finally {
      await service.close();
    }
  }
  return { claim: "subscription-differential", passed, ...variants };
};
