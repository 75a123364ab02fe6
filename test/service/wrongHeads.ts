import assert from "node:assert/strict";
import { after, before, describe, type TestContext, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { metric, rpc } from "../support/clients/rpc.ts";
import { until } from "../support/clients/until.ts";
import { createFakeChain, type FakeChain } from "../support/fakes/fakeChain.ts";
import { createFakeNode } from "../support/fakes/fakeNode.ts";
import {
  everyOther,
  headAhead,
  headAt,
  headBehind,
  latestWith,
  numberOff,
  wrongParent,
} from "../support/fakes/headLies.ts";
import { type Lie, type LyingNode, startLyingNode } from "../support/fakes/lyingNode.ts";
import type { Lifespan } from "../support/servers/redis.ts";
import { createService, type Service } from "../support/servers/service.ts";
import { untilFilled } from "../support/servers/untilFilled.ts";

const HEIGHT = 145;
const BLOCK_MS = 250;
const LIE_MS = 1_200;
const ASK_EVERY_MS = 20;
const CHAIN_ID = 31_337;
const OTHER_CHAIN_ID = 5;
const BYPASS_HEADER = "x-fresh";

const quantity = (number: number | bigint): string => `0x${number.toString(16)}`;

/** The nodes and blocks from which a row creates its wrong responses. */
interface World {
  /** A node of a chain with another id and other blocks, at about the same height. */
  readonly other: AskOther;
  /** A node of a chain with another id that is far higher. */
  readonly higher: AskOther;
}
type AskOther = (method: string, params: readonly unknown[]) => Promise<unknown>;

interface Row {
  readonly name: string;
  /** Whether `npm test` runs it. The others are in `npm run test:slow`. */
  readonly isQuick?: true;
  readonly lies: (world: World) => readonly Lie[];
  /** Whether the node must be suspended while it lies. */
  readonly isSuspended?: true;
  /** Whether the head of a single node cannot be recognised as wrong. */
  readonly needsOther?: true;
  /** Whether the node's connections end when the lie begins, as at a restart. */
  readonly isRestarted?: true;
}

const fromOther = (name: string, other: AskOther, methods?: readonly string[]): Lie => ({
  name,
  ...(methods && { methods }),
  result: (_, { method, params }) => other(method, params),
});

const otherChainId: Lie = {
  name: "chain id",
  methods: ["eth_chainId", "net_version"],
  result: (_, { method }) => (method === "net_version" ? `${OTHER_CHAIN_ID}` : quantity(OTHER_CHAIN_ID)),
};

/** Sends HTTP requests to the two chains in turn. */
const balanced = (name: string, other: AskOther): Lie => {
  let requests = 0;
  return {
    name,
    http: (http) => {
      requests++;
      return http;
    },
    result: (result, { method, params }) => (requests % 2 === 0 ? result : other(method, params)),
  };
};

const ROWS: readonly Row[] = [
  { name: "its head is 2^60", lies: () => [headAt("2^60", 2n ** 60n)] },
  { name: "its head is 2^256-1", lies: () => [headAt("2^256-1", 2n ** 256n - 1n)] },
  { name: "its head is 2^53", lies: () => [headAt("2^53", 2n ** 53n)] },
  { name: "its head is 2^53-1", lies: () => [headAt("2^53-1", 2n ** 53n - 1n)] },
  { name: "its head is 5,000, and it has the block below", lies: () => [headAt("5,000", 5_000n)] },
  { name: "its head is 5,000, and it has no block below", lies: () => [headAt("5,000 alone", 5_000n, 0n)] },
  {
    name: "its head is 5,000, and it has 64 blocks below",
    isQuick: true,
    lies: () => [headAt("5,000 and more", 5_000n, 64n)],
  },
  { name: "its head is 50 ahead, with blocks that do not link", lies: () => [headAhead("50 ahead", 50n)] },
  { name: "its head is 3 ahead, with blocks that do not link", lies: () => [headAhead("3 ahead", 3n)] },
  { name: "its head is 100 behind", lies: () => [headBehind("behind", BigInt(HEIGHT - 100))] },
  { name: "its head is the genesis block", lies: () => [headBehind("genesis", 0n)] },
  { name: "its head alternates with 5,000", lies: () => [everyOther("alternating", headAt("5,000", 5_000n))] },
  { name: "its head alternates with 2^60", lies: () => [everyOther("alternating", headAt("2^60", 2n ** 60n))] },
  { name: "its head alternates with 0", lies: () => [everyOther("alternating", headBehind("0", 0n))] },
  { name: "its newest block has another parent", lies: () => [wrongParent] },
  { name: "its newest block has the next number", lies: () => [numberOff("next number", 1n)] },
  { name: "its newest block has a number far above", lies: () => [numberOff("far above", 2_000n)] },
  { name: "its newest block has a lower number", lies: () => [numberOff("lower number", -5n)] },
  { name: "its newest block is null", lies: () => [latestWith("null", () => null)] },
  { name: "its newest block has no hash", lies: () => [latestWith("no hash", (block) => ({ ...block, hash: null }))] },
  {
    name: "its newest block has the time 2^256-1",
    lies: () => [latestWith("time", (block) => ({ ...block, timestamp: `0x${"f".repeat(64)}` }))],
  },
  {
    name: "it is a load balancer that reaches another chain",
    isQuick: true,
    lies: ({ other }) => [fromOther("other chain", other)],
    isSuspended: true,
  },
  {
    name: "it is a load balancer that reaches a far higher chain",
    lies: ({ higher }) => [fromOther("higher chain", higher)],
    isSuspended: true,
  },
  {
    name: "it is a load balancer that reaches another chain with every other request",
    lies: ({ other }) => [balanced("every other request", other)],
  },
  {
    name: "it was restarted and has another chain id, its blocks are right",
    lies: () => [otherChainId],
    isRestarted: true,
    isSuspended: true,
  },
  {
    name: "its blocks are another chain's, its chain id is right",
    isSuspended: true,
    // A devnet that was reset to another genesis block.
    needsOther: true,
    lies: ({ other }) => [fromOther("other blocks", other, ["eth_getBlockByNumber", "eth_getBlockByHash"])],
  },
];

/** Sends calls in turn. A response that differs from the honest chain is a failure. */
const startWatch = (service: Service, chain: FakeChain) => {
  const wrong: string[] = [];
  let [answers, missing, turn] = [0, 0, 0];
  const ending = new AbortController();

  const checkBlock = (asked: string, result: unknown): void => {
    if (result === null) {
      missing++;
      return;
    }
    const { number, hash } = Object(result);
    const expected = chain.blocks[Number(number)];
    const isOther = asked !== "latest" && asked !== number;
    if (isOther || expected === undefined || expected.hash !== hash) {
      wrong.push(`${asked}: ${number} ${hash}`);
    }
  };
  const ask = async (): Promise<void> => {
    turn++;
    const number = quantity(turn % Number(chain.latest.number - 2n));
    const questions: readonly (readonly [string, readonly unknown[], (result: unknown) => void])[] = [
      ["eth_blockNumber", [], (result) => Number(result) > chain.latest.number && wrong.push(`head ${result}`)],
      ["eth_getBlockByNumber", ["latest", false], (result) => checkBlock("latest", result)],
      ["eth_getBlockByNumber", [number, turn % 2 === 0], (result) => checkBlock(number, result)],
      ["eth_chainId", [], (result) => Number(result) !== CHAIN_ID && wrong.push(`chain id ${result}`)],
      ["net_version", [], (result) => Number(result) !== CHAIN_ID && wrong.push(`network ${result}`)],
    ];
    const [method, params, check] = questions[turn % questions.length] ?? assert.fail();
    // Half of the responses may be from the cache, all others from a node.
    const bypassCache: Record<string, string> = turn % 4 < 2 ? { [BYPASS_HEADER]: "1" } : {};
    const response = await fetch(service.url, {
      method: "POST",
      headers: { "content-type": "application/json", ...bypassCache },
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }),
    });
    const { result, error }: { result?: unknown; error?: unknown } = Object(await response.json());
    if (error === undefined) {
      check(result);
    } else {
      missing++;
    }
    answers++;
  };
  const probe = async (): Promise<void> => {
    assert.equal((await fetch(`${service.opsUrl}/healthz`)).status, 200);
  };
  const repeat = async (act: () => Promise<void>): Promise<void> => {
    while (!ending.signal.aborted) {
      await act();
      await sleep(ASK_EVERY_MS);
    }
  };
  const running = Promise.all([repeat(ask), repeat(probe)]);
  return {
    stop: async () => {
      ending.abort();
      await running;
      return { wrong, answers, missing };
    },
  };
};

interface Arranged {
  readonly chain: FakeChain;
  readonly service: Service;
  readonly liar: LyingNode;
  readonly world: World;
}

/** Starts a service in front of a node that can lie, alone or with an honest one, while the chain continues. */
const arrange = async (t: Lifespan, isOnlyNode: boolean): Promise<Arranged> => {
  const startNode = async (chain: FakeChain): Promise<string> => {
    const node = await createFakeNode({ chain });
    t.after(() => node.close());
    return node.url;
  };
  const askOther = async (height: number, seed: string): Promise<AskOther> => {
    const url = await startNode(createFakeChain({ chainId: OTHER_CHAIN_ID, height, seed }));
    return async (method, params) => (await rpc(url, method, params)).body.result;
  };
  const chain = createFakeChain({ chainId: CHAIN_ID, height: HEIGHT });
  const liar = await startLyingNode(t, await startNode(chain));
  const honest = isOnlyNode ? [] : [{ url: await startNode(chain), name: "honest" }];
  const world = { other: await askOther(HEIGHT, "other"), higher: await askOther(HEIGHT + 3_000, "higher") };
  const service = await createService(
    {
      nodes: [{ url: liar.url, name: "liar" }, ...honest],
      blockTimeMs: BLOCK_MS,
      pending: { mode: "node" },
      forks: "none",
    },
    { cache: { bypassHeader: BYPASS_HEADER } },
  );
  t.after(() => service.close());
  const mining = setInterval(() => chain.mine(), BLOCK_MS);
  t.after(() => clearInterval(mining));
  await untilFilled(service);
  return { chain, service, liar, world };
};

const headOf = async ({ url }: Service): Promise<bigint> =>
  BigInt(String((await rpc(url, "eth_blockNumber")).body.result));

/** Waits until the served head is the chain's current one or a later one. */
const follows = async ({ service, chain }: Arranged, what: string): Promise<void> => {
  const { number } = chain.latest;
  await until(async () => (await headOf(service)) >= number, what);
};

const assertOtherAnswers = async ({ service }: Arranged, beforeLie: bigint): Promise<void> => {
  // Two origins must agree. One that lags or lies without a contradiction is awaited for 2 s (docs/architecture.md, Agreement).
  await until(async () => (await headOf(service)) > beforeLie, "the other node's head is served");
  const { body } = await rpc(service.url, "eth_getBalance", [`0x${"11".repeat(20)}`, quantity(beforeLie)]);
  assert.equal(body.result, quantity(beforeLie), "the other node answers");
};

const assertCacheIsTrue = async ({ service, chain }: Arranged): Promise<void> => {
  for (const block of chain.blocks.slice(0, -20)) {
    const { body } = await rpc(service.url, "eth_getBlockByNumber", [quantity(block.number), false]);
    assert.deepEqual(body.result, block.json);
  }
};

const lieAndReturn = async (arranged: Arranged, row: Row, isOnlyNode: boolean, t: TestContext): Promise<void> => {
  const { chain, service, liar, world } = arranged;
  const isSuspended = async (): Promise<boolean> =>
    (await metric(service.opsUrl, "forebay_upstream_wrong_chain", 'node="liar"')) === 1;
  await until(async () => !(await isSuspended()), "the node is not suspended for the lie before");
  await follows(arranged, "the chain is followed");
  const watch = startWatch(service, chain);
  t.after(watch.stop);
  const beforeLie = chain.latest.number;
  liar.lies = row.lies(world);
  if (row.isRestarted) {
    liar.disconnect();
  }
  await sleep(LIE_MS);
  if (row.isSuspended) {
    await until(isSuspended, "the node is suspended");
  }
  if (!isOnlyNode) {
    await assertOtherAnswers(arranged, beforeLie);
  }
  await until(() => liar.lies.some((lie) => liar.lied.has(lie.name)), "the node lied");
  liar.lies = [];
  await follows(arranged, "the chain is followed after the lie");
  const { wrong, answers, missing } = await watch.stop();
  assert.deepEqual(wrong.slice(0, 5), [], `${wrong.length} of ${answers} answers are not the chain's`);
  if (!isOnlyNode) {
    assert.equal(missing, 0, "the other node answers everything");
  }
};

/** Tests that no wrong head or chain of a node is served, for the quick rows or for the others. */
export const testWrongHeads = (title: string, isQuick: boolean): void => {
  describe(title, { concurrency: true }, () => {
    for (const isOnlyNode of [false, true]) {
      describe(isOnlyNode ? "of the only node" : "of one of two nodes", { concurrency: 1 }, () => {
        const ends: (() => unknown)[] = [];
        let arranged: Arranged;
        before(async () => {
          arranged = await arrange({ after: (end) => ends.unshift(end) }, isOnlyNode);
        });
        after(async () => {
          for (const end of ends) {
            await end();
          }
        });
        for (const row of ROWS.filter((row) => (row.isQuick ?? false) === isQuick && !(isOnlyNode && row.needsOther))) {
          test(row.name, (t) => lieAndReturn(arranged, row, isOnlyNode, t));
        }
        test("no wrong response was cached", () => assertCacheIsTrue(arranged));
      });
    }
  });
};
