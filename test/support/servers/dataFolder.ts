import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { DataStorage } from "../../../src/storage/dataStorage.ts";
import { askAll, isHit } from "../clients/askAll.ts";
import { metric } from "../clients/rpc.ts";
import { until } from "../clients/until.ts";
import { createFakeChain, type FakeChain } from "../fakes/fakeChain.ts";
import { createFakeNode, type FakeNode } from "../fakes/fakeNode.ts";
import type { ChainCall } from "./sealedChain.ts";
import { createService, type Service } from "./service.ts";

/** The reads of a page about old blocks: blocks, receipts and logs. */
export const FINAL_CALLS: readonly ChainCall[] = [
  ...[1, 2, 3].map((number) => ({ method: "eth_getBlockByNumber", params: [`0x${number}`, false] })),
  ...[1, 2, 3].map((number) => ({ method: "eth_getBlockReceipts", params: [`0x${number}`] })),
  { method: "eth_getLogs", params: [{ fromBlock: "0x1", toBlock: "0x5" }] },
];

/** Further final blocks: each shows once whether stored entries are used, because memory has it after its first read. */
export const PROBES: readonly ChainCall[] = Array.from({ length: 24 }, (_, index) => index + 6).flatMap((number) =>
  [false, true].map((isFull) => ({ method: "eth_getBlockByNumber", params: [`0x${number.toString(16)}`, isFull] })),
);

const HEIGHT = 40;

export interface FolderFixture {
  readonly folder: string;
  readonly node: FakeNode;
  /** Starts a forebay on the folder. It ends with the test. */
  start(options?: FolderOptions): Promise<Service>;
  /** The calls of `FINAL_CALLS` that the node got. */
  asked(): number;
}

interface FolderOptions {
  readonly cache?: { readonly disk?: "auto" | "always" | false; readonly diskBytes?: number; readonly redis?: string };
  readonly chain?: FakeChain;
  /** Does not wait until entries of the chain can be stored. */
  readonly mayFail?: boolean;
}

/** Counts how often a part of a data folder was opened: its entries can be stored then. */
const countOpenedParts = (t: TestContext): (() => number) => {
  const { openPart } = DataStorage.prototype;
  let count = 0;
  t.mock.method(
    DataStorage.prototype,
    "openPart",
    async function (this: DataStorage, ...args: Parameters<typeof openPart>): Promise<void> {
      await openPart.apply(this, args);
      count += this.isOpen(args[0]) ? 1 : 0;
    },
  );
  return () => count;
};

/** Creates a folder in the folder of temporary files, and a node with final blocks. Both end with the test. */
export const createDataFolder = async (t: TestContext): Promise<FolderFixture> => {
  const parent = await mkdtemp(join(tmpdir(), "forebay-data-"));
  const folder = join(parent, "data");
  const node = await createFakeNode({
    chain: createFakeChain({ height: HEIGHT }),
    handlers: { eth_getBlockReceipts: () => [] },
  });
  const services: Service[] = [];
  const opened = countOpenedParts(t);
  t.after(async () => {
    await Promise.all(services.map((service) => service.close()));
    await node.close();
    await rm(parent, { recursive: true, force: true });
  });
  return {
    folder,
    node,
    start: async ({ cache = {}, mayFail = false } = {}) => {
      const openedBefore = opened();
      const service = await createService(
        { nodes: [{ url: node.url, name: "own" }], pending: { mode: "node" }, state: { follow: false } },
        { cache, server: { dataDir: folder } },
      );
      services.push(service);
      await until(
        async () => (await metric(service.opsUrl, "forebay_head{", 'tag="finalized"')) > 0,
        "the finalized head is known",
      );
      if (!mayFail) {
        await until(() => opened() > openedBefore, "entries of the chain can be stored");
      }
      return service;
    },
    asked: () => node.count("eth_getBlockReceipts", "eth_getLogs"),
  };
};

/** Waits until all entries are written. */
export const written = async ({ opsUrl }: Service, entries = FINAL_CALLS.length): Promise<void> => {
  await until(
    async () =>
      (await metric(opsUrl, "forebay_disk_entries")) >= entries &&
      (await metric(opsUrl, "forebay_disk_queue_bytes")) === 0,
    "the entries are written",
  );
};

/** Stores blocks by which `compared` sees that stored entries are used. */
export const storeProbes = async (service: Service): Promise<void> => {
  await askAll(service.url, PROBES);
  await written(service, PROBES.length);
};

/** Waits until the stored entries of the chain are compared with its node, and used. */
export const compared = async ({ url }: Pick<Service, "url">): Promise<void> => {
  let next = 0;
  await until(
    async () => (await askAll(url, PROBES.slice(next, ++next))).some((each) => isHit(each, "disk")),
    "stored entries are used",
  );
};

/** The reads of the folder that had no response in time, so that the node answers them: on a busy machine, some. */
export const lateReads = ({ opsUrl }: Pick<Service, "opsUrl">): Promise<number> =>
  metric(opsUrl, "forebay_disk_errors_total", 'reason="timeout"');
