import { setTimeout as sleep } from "node:timers/promises";
import type { Address, Hash } from "../../src/ethereum/hex.ts";
import { createFeedServer } from "../devnet/feedServer.ts";
import { createRandom, pick } from "../support/builders/randomValues.ts";
import { createService, type Service, type ServiceChain } from "../support/servers/service.ts";
import { RandomStateBlocks, STAND_IN_ACCOUNTS, type TracedRefunds } from "../support/standIn/randomStateBlocks.ts";
import { REFUND_ACCOUNTS, RefundFeed } from "../support/standIn/refundFeed.ts";
import { type StandInBlock, StandInChain } from "../support/standIn/standInChain.ts";
import { StandInNode, type StandInNodeOptions } from "../support/standIn/standInNode.ts";
import { comparePending } from "./support/comparedRefunds.ts";
import type { LongOptions } from "./support/memory.ts";

const WHOLE_SECONDS = 240;
const FIRST_BLOCKS = 80;
const BLOCK_MS = 150;
/** Of a chain with a feed. */
const FEED_BLOCK_MS = 600;
const MESSAGES = 5;
const MAX_TRANSFERS = 4;
const MAX_DEPTH = 20;
const MAX_REORG = 3;
const CLIENTS = 4;
const KEPT_DIFFERENCES = 20;
/** A wrong answer suspends its node for 30 s. A new service, with its nodes unblamed, begins after this number of comparisons. */
const ROUND_COMPARISONS = 400;
const LYING_SHARE = 0.3;
const PENDING_SHARE = 0.5;
const CHEAP = { debug_traceBlockByHash: 1, debug_executionWitness: 1, eth_getProof: 1 };
/** `SEED=n` selects other blocks and reads. */
const seed = Number(process.env.SEED ?? 1);

type Fields = Readonly<Record<string, unknown>>;
type Lies = NonNullable<StandInNodeOptions["lies"]>;

interface Read {
  readonly method: string;
  readonly params: readonly unknown[];
  readonly expected: unknown;
  /** The answer must be proven. */
  readonly isRequired?: boolean;
}

interface Tally {
  comparisons: number;
  /** The right answers at `pending`. */
  pending: number;
  readonly modes: Map<string, number>;
  errors: number;
  lies: number;
  /** The answers by method and label. */
  readonly labels: Map<string, number>;
  readonly differences: object[];
}

/** What writes the blocks of a chain, and perhaps announces them. */
interface Driver {
  readonly accounts: readonly Address[];
  readonly blockMs: number;
  readonly pending: ServiceChain["pending"];
  /** Seals a block at once. */
  mine(): Promise<void>;
  /** Seals the next blocks in their time. */
  next(): Promise<void>;
  /** Compares what a service shows at `pending`. */
  readonly comparePending?: (service: Service) => Promise<void>;
  close(): Promise<void>;
}

interface World {
  readonly chain: StandInChain;
  readonly random: () => number;
  readonly tally: Tally;
  readonly driver: Driver;
}

const listOf = (block: StandInBlock): readonly Fields[] => Reflect.get(block.fullJson, "transactions");

/** Draws a read of a block near the head: its body, its receipts, one of its transactions, or a value after it. */
const drawRead = ({ chain, random, driver }: World): Read => {
  const block = chain.at(chain.height - Math.floor(random() * MAX_DEPTH)) ?? chain.latest;
  const { hash, receipts = [] } = block;
  const index = Math.floor(random() * receipts.length);
  const [transaction, receipt] = [listOf(block)[index], receipts[index]];
  const isRequired = random() < 0.3;
  switch (Math.floor(random() * (receipt === undefined ? 4 : 7))) {
    case 0:
      return { method: "eth_getBlockByHash", params: [hash, true], expected: block.fullJson };
    case 1:
      return { method: "eth_getBlockByHash", params: [hash, false], expected: block.json, isRequired };
    case 2: {
      const account = pick(random, driver.accounts);
      const expected = `0x${chain.stateAt(hash).balance(account).toString(16)}`;
      return { method: "eth_getBalance", params: [account, { blockHash: hash }], expected, isRequired };
    }
    case 3: {
      const expected = `0x${listOf(block).length.toString(16)}`;
      return { method: "eth_getBlockTransactionCountByHash", params: [hash], expected, isRequired };
    }
    case 4:
      return { method: "eth_getBlockReceipts", params: [hash], expected: receipts };
    case 5:
      return { method: "eth_getTransactionByHash", params: [transaction?.hash], expected: transaction };
    default:
      return { method: "eth_getTransactionReceipt", params: [transaction?.hash], expected: receipt };
  }
};

/** Whether the block left the chain during the request. A read by transaction may then be of another block. */
const isReplaced = ({ chain }: World, { expected }: Read): boolean => {
  const hash = Reflect.get(Object(expected), "blockHash");
  return typeof hash === "string" && !chain.values.isCanonical(hash as Hash);
};

/** Whether a read by transaction was answered from a message of the feed. Another read compares those. */
const isPreconfirmed = ({ chain, driver }: World, result: unknown): boolean => {
  const hash: unknown = Reflect.get(Object(result), "blockHash");
  return (
    driver.pending !== undefined && (hash === null || (typeof hash === "string" && chain.block(hash) === undefined))
  );
};

const compare = async (world: World, service: Service, isOver: () => boolean): Promise<void> => {
  const { tally, random, driver } = world;
  while (!isOver()) {
    if (driver.comparePending !== undefined && random() < PENDING_SHARE) {
      await driver.comparePending(service);
      continue;
    }
    const read = drawRead(world);
    const { method, params, isRequired = false } = read;
    const response = await fetch(service.url, {
      method: "POST",
      headers: { "content-type": "application/json", ...(isRequired && { "x-forebay-require": "proven" }) },
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }),
    });
    const { result, error } = (await response.json()) as { readonly result?: unknown; readonly error?: unknown };
    tally.comparisons++;
    if (error !== undefined) {
      tally.errors += isRequired ? 0 : 1;
      continue;
    }
    const label = (response.headers.get("x-forebay-proof") ?? "").split(";")[0];
    const key = `${method} ${label}`;
    tally.labels.set(key, (tally.labels.get(key) ?? 0) + 1);
    const isSame = JSON.stringify(result) === JSON.stringify(read.expected);
    const isOther = isReplaced(world, read) || isPreconfirmed(world, result);
    if (!isSame && !isOther && tally.differences.length < KEPT_DIFFERENCES) {
      tally.differences.push({ method, params, label, result, expected: read.expected });
    }
  }
};

/** Lies about all that a root covers, or that follows from the block. */
const liesOf = ({ random, tally }: World): Lies => {
  const lie = (change: (fields: Fields) => Fields) => (value: unknown) => {
    if (random() >= LYING_SHARE || typeof value !== "object" || value === null) {
      return value;
    }
    tally.lies++;
    return change(value as Fields);
  };
  const changeTransaction = (fields: Fields): Fields =>
    pick(random, [
      { ...fields, value: "0x1234567" },
      { ...fields, type: "0x55", value: "0x1234567" },
      { ...fields, input: "0x00" },
    ]);
  const misplace = (fields: Fields): Fields => ({ ...fields, transactionIndex: "0x63" });
  /** Single receipts of deposits are not compared in full (docs/answers.md, Verification of responses). */
  const changeReceipt = (fields: Fields): Fields => (fields.type === "0x7e" ? fields : changeSigned(fields));
  const changeSigned = (fields: Fields): Fields =>
    pick(random, [
      { ...fields, status: "0x0" },
      { ...fields, gasUsed: "0x1" },
      { ...fields, opGasRefund: "0x7" },
      { ...fields, cumulativeGasUsed: "0x7" },
      { ...fields, type: "0x55", status: "0x0" },
    ]);
  const inList = (list: unknown, change: (fields: Fields) => Fields): unknown => {
    const items = list as readonly Fields[];
    const at = Math.floor(random() * items.length);
    return items.map((item, index) => (index === at && typeof item === "object" ? change(item) : item));
  };
  // The index of a single transaction is compared only if its block was read in full before.
  const block = lie((fields) => ({
    ...fields,
    transactions: inList(fields.transactions, random() < 0.2 ? misplace : changeTransaction),
  }));
  return {
    eth_getBlockByHash: block,
    eth_getBlockByNumber: block,
    eth_getTransactionByHash: lie(changeTransaction),
    eth_getTransactionReceipt: lie(changeReceipt),
    eth_getBlockReceipts: lie((list) => inList(list, changeReceipt) as Fields),
    eth_getProof: lie((proof) => ({ ...proof, balance: "0x1", accountProof: [] })),
  };
};

const drive = async (driver: Driver, signal: AbortSignal): Promise<void> => {
  while (!signal.aborted) {
    await driver.next();
  }
};

type Base = Pick<World, "chain" | "random" | "tally">;

/** All kinds of writes, and reorganisations. Traces show what a block writes. */
const traced =
  (refunds: TracedRefunds) =>
  async ({ chain, random }: Base): Promise<Driver> => {
    const blocks = new RandomStateBlocks(chain, seed, refunds);
    blocks.genesis();
    return {
      ...{ accounts: STAND_IN_ACCOUNTS, blockMs: BLOCK_MS, pending: undefined },
      mine: async () => void (await blocks.mine()),
      next: async () => {
        const depth = random() < 0.1 ? 1 + Math.floor(random() * MAX_REORG) : 0;
        if (depth > 0) {
          chain.rewind(depth);
        }
        for (let count = 0; count <= depth; count++) {
          await blocks.mine();
        }
        await sleep(BLOCK_MS);
      },
      close: async () => undefined,
    };
  };

/** Transfers in the messages of a feed. Each message changes the refunds of its block's earlier transactions. */
const announced =
  (givesBack: boolean) =>
  async ({ chain, random, tally }: Base): Promise<Driver> => {
    const feed = await createFeedServer("text");
    const sequencer = new RefundFeed(chain, random, givesBack);
    sequencer.genesis();
    const step = () => sequencer.step(Math.floor(random() * (MAX_TRANSFERS + 1)));
    return {
      ...{ accounts: REFUND_ACCOUNTS, blockMs: FEED_BLOCK_MS, pending: { mode: "feed", feeds: [feed.url] } },
      mine: async () => {
        sequencer.begin();
        step();
        sequencer.seal();
      },
      next: async () => {
        for (let message = 0; message < MESSAGES; message++) {
          feed.send(message === 0 ? sequencer.begin() : step());
          await sleep(FEED_BLOCK_MS / MESSAGES);
        }
        sequencer.seal();
      },
      comparePending: async ({ url }) => {
        const { mode, isRight, difference } = await comparePending(url, sequencer, pick(random, REFUND_ACCOUNTS));
        tally.comparisons++;
        tally.modes.set(mode, (tally.modes.get(mode) ?? 0) + 1);
        if (isRight === true) {
          tally.pending++;
        } else if (isRight === false && tally.differences.length < KEPT_DIFFERENCES) {
          tally.differences.push(difference);
        }
      },
      close: () => feed.close(),
    };
  };

const runRound = async (world: World, urls: readonly string[], isRunOver: () => boolean): Promise<void> => {
  const { tally, driver } = world;
  const [liar = "", dead = "", writes = "", ...honest] = urls;
  const service = await createService({
    nodes: [
      { name: "liar", url: liar, provider: "liar" },
      { name: "dead", url: dead, provider: "dead" },
      { name: "writes", url: writes, provider: "writes", methods: { only: ["eth_sendRawTransaction"] } },
      ...honest.map((url, index) => ({ name: `honest${index}`, url, provider: `honest${index}`, priority: 1 })),
    ],
    ...{ blockTimeMs: driver.blockMs, forks: "lagoon", pending: driver.pending },
    state: { units: CHEAP, prove: true },
  });
  const last = tally.comparisons + ROUND_COMPARISONS;
  const isOver = (): boolean => isRunOver() || tally.comparisons >= last;
  try {
    await Promise.all(Array.from({ length: CLIENTS }, () => compare(world, service, isOver)));
  } finally {
    await service.close();
  }
};

/** Returns what a chain with or without refunds gave. */
const run = async (createDriver: (base: Base) => Promise<Driver>, seconds: number, steps: number | undefined) => {
  const chain = new StandInChain("prague", true);
  const tally: Tally = {
    ...{ comparisons: 0, pending: 0, errors: 0, lies: 0 },
    ...{ modes: new Map(), labels: new Map(), differences: [] },
  };
  const base = { chain, random: createRandom(seed), tally };
  const driver = await createDriver(base);
  for (let count = 0; count < FIRST_BLOCKS; count++) {
    await driver.mine();
  }
  const world = { ...base, driver };
  const shared = { chain, traces: "geth", hasProofs: true, hasWitnesses: true } as const;
  const nodes = await Promise.all(
    [{ lies: liesOf(world) }, {}, {}, {}, {}].map((own) => StandInNode.start({ ...shared, ...own })),
  );
  await nodes[1]?.stop();
  const ending = new AbortController();
  const driving = drive(driver, ending.signal);
  const endMs = performance.now() + seconds * 1_000;
  const isOver = (): boolean => (steps === undefined ? performance.now() >= endMs : tally.comparisons >= steps);
  try {
    while (!isOver()) {
      await runRound(
        world,
        nodes.map(({ url }) => url),
        isOver,
      );
    }
  } finally {
    ending.abort();
    await driving;
    await driver.close();
    await Promise.all(nodes.map((node) => node.close()));
  }
  return { ...tally, modes: Object.fromEntries(tally.modes), labels: Object.fromEntries(tally.labels) };
};

const provenOf = ({ labels }: { readonly labels: Readonly<Record<string, number>> }): readonly string[] =>
  Object.keys(labels).filter((key) => key.endsWith(" proven"));

export const takesSteps = true;

/** The chains by name: each without refunds, and with them. */
const DRIVERS = {
  traces: [traced("none"), traced("unsettled")],
  feed: [announced(false), announced(true)],
} as const;

/**
 * Reads blocks, receipts and state of a chain of an OP stack, and with a feed also its pending block. One of five nodes lies about
 * what roots cover, one is dead, and one gets writes alone. First no block gives back gas, then each may. A step is an answer.
 * `CHAIN=feed` selects one of the chains.
 */
export const long = async ({ seconds = WHOLE_SECONDS, steps }: LongOptions) => {
  const chosen = Object.entries(DRIVERS).filter(([name]) => [name, undefined].includes(process.env.CHAIN));
  const runs: Record<string, object> = {};
  let passed = chosen.length > 0;
  for (const [name, [first, second]] of chosen) {
    const part = seconds / (2 * chosen.length);
    const without = await run(first, part, steps);
    const withRefunds = await run(second, part, steps);
    const lost = provenOf(without).filter((key) => !provenOf(withRefunds).includes(key));
    runs[name] = { without, withRefunds, lost };
    const areRight = [without, withRefunds].every(
      ({ differences, errors, comparisons, lies, pending }) =>
        differences.length === 0 && errors < comparisons && lies > 0 && (name !== "feed" || pending > 0),
    );
    passed &&= areRight && lost.length === 0;
  }
  return {
    claim: "no answer is wrong in front of blocks that give back gas, and what was proven is proven",
    ...{ seed, runs, passed },
  };
};
