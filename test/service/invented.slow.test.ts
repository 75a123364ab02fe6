import assert from "node:assert/strict";
import { describe, type TestContext, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { metric, rpc } from "../support/clients/rpc.ts";
import { connectSocket } from "../support/clients/socketClient.ts";
import { until } from "../support/clients/until.ts";
import { watchHealth } from "../support/clients/watchHealth.ts";
import { createFakeNode, type FakeNode } from "../support/fakes/fakeNode.ts";
import { createService } from "../support/servers/service.ts";
import { BranchedChain, HOLDER, isForgedText } from "../world/chain/branchedChain.ts";
import { EMITTER } from "../world/chain/emitter.ts";

const HEIGHT = 40;
const BLOCK_MS = 250;
const RUN_MS = 4_000;
const ASK_EVERY_MS = 25;
const HEALTH_LIMIT_MS = 500;

interface WorldNode {
  readonly chain: BranchedChain;
  readonly fake: FakeNode;
}

interface Step {
  readonly honest: BranchedChain;
  readonly nodes: readonly WorldNode[];
  /** Counts the honest blocks since the start. */
  readonly turn: number;
}

interface Scenario {
  readonly name: string;
  readonly nodes: number;
  /** Who runs each node. Default: somebody else each. */
  readonly providers?: readonly string[];
  /** Node by node, what it does after each honest block. The default follows at once. */
  readonly acts: Readonly<Record<number, (node: WorldNode, step: Step) => void>>;
  /** The stated rule decides: with one against one, the preferred origin; if only the liar is left, its head. */
  readonly mayServeForged?: true;
  /** Whether the served head may change its branch. */
  readonly mayReorganise?: true;
  /** The label of the answers at the end. Default: agreed. */
  readonly label?: "agreed" | "linked";
  readonly isContradicted?: true;
}

/** Announces a child of the honest head, before the honest nodes have one. */
const inventChild = ({ chain }: WorldNode, { honest }: Step): void => {
  chain.follow(honest);
  chain.mine(1, true);
};

/** Invents a chain once, and extends it faster than the honest one grows. */
const inventChain =
  (blocks: number) =>
  ({ chain }: WorldNode, { honest, turn }: Step): void => {
    if (turn === 1) {
      chain.follow(honest);
      chain.mine(blocks, true);
    } else {
      chain.mine(1, true);
    }
  };

const lag =
  (blocks: number) =>
  ({ chain }: WorldNode, { honest }: Step): void =>
    chain.follow(honest, blocks);

const none = (): void => undefined;

const SCENARIOS: readonly Scenario[] = [
  { name: "one of four invents a child of each block", nodes: 4, acts: { 0: inventChild } },
  { name: "one of three invents a child of each block", nodes: 3, acts: { 0: inventChild } },
  { name: "one of three invents a chain 60 ahead", nodes: 3, acts: { 1: inventChain(60) } },
  {
    name: "one of three invents a child of each block, and the others lag by one and two blocks",
    nodes: 3,
    acts: { 0: inventChild, 1: lag(1), 2: lag(2) },
  },
  {
    name: "one of four invents a child, and the others lag by one to three blocks",
    nodes: 4,
    acts: { 0: inventChild, 1: lag(1), 2: lag(2), 3: lag(3) },
  },
  {
    name: "a liar returns to honesty after eight blocks",
    nodes: 3,
    acts: { 0: (node, step) => (step.turn < 8 ? inventChain(3)(node, step) : node.chain.follow(step.honest)) },
  },
  {
    name: "one of three is on a wrong fork that seals faster",
    nodes: 3,
    acts: {
      0: ({ chain }, { honest, turn }) => {
        if (turn === 1) {
          chain.follow(honest, 2);
        }
        chain.mine(2, true);
      },
    },
  },
  {
    name: "three nodes of one provider invent against two other origins",
    nodes: 5,
    providers: ["liar", "liar", "liar", "a", "b"],
    acts: { 0: inventChild, 1: inventChild, 2: inventChild },
  },
  {
    name: "a load balancer of an honest origin has machines that differ",
    nodes: 3,
    acts: { 0: inventChild, 1: ({ chain }, { honest, turn }) => chain.follow(honest, turn % 3) },
  },
  {
    name: "one of three reports its invented head as finalized",
    nodes: 3,
    acts: {
      0: (node, step) => {
        inventChain(20)(node, step);
        node.fake.faults.height = undefined;
      },
    },
  },
  {
    name: "one of two invents, and the honest one is preferred",
    nodes: 2,
    acts: { 1: inventChain(4) },
    label: "linked",
    isContradicted: true,
  },
  {
    name: "one of two invents, and is preferred",
    nodes: 2,
    acts: { 0: inventChain(4) },
    mayServeForged: true,
    mayReorganise: true,
    label: "linked",
    isContradicted: true,
  },
  {
    name: "nodes fail until one is left",
    nodes: 3,
    acts: {
      0: ({ fake, chain }, { honest, turn }) => {
        chain.follow(honest);
        fake.faults.answer = turn > 3 ? "reset" : undefined;
      },
      1: ({ fake, chain }, { honest, turn }) => {
        chain.follow(honest);
        fake.faults.answer = turn > 6 ? "reset" : undefined;
      },
    },
    label: "linked",
  },
  { name: "one of three is silent", nodes: 3, acts: { 2: none } },
];

/** Starts the nodes, forebay in front of them, and the honest chain. */
const startWorld = async (t: TestContext, { nodes: count, providers = [], acts }: Scenario) => {
  const honest = new BranchedChain(HEIGHT, 1);
  const nodes = await Promise.all(
    Array.from({ length: count }, async (): Promise<WorldNode> => {
      const chain = honest.copy();
      const fake = await createFakeNode({ chain, handlers: chain.handlers() });
      t.after(() => fake.close());
      return { chain, fake };
    }),
  );
  const service = await createService({
    nodes: nodes.map(({ fake: { url, wsUrl } }, index) => ({
      ...{ url, wsUrl },
      ...(providers[index] !== undefined && { provider: providers[index] }),
    })),
    blockTimeMs: BLOCK_MS,
    pending: { mode: "native" },
  });
  t.after(() => service.close());
  let turn = 0;
  const step = (): void => {
    turn++;
    honest.mine();
    for (const [index, node] of nodes.entries()) {
      const act = acts[index] ?? (({ chain }) => chain.follow(honest));
      act(node, { honest, nodes, turn });
    }
  };
  return { honest, nodes, service, step };
};

interface Seen {
  answers: number;
  readonly forged: string[];
  readonly stepsBack: string[];
  healthMs: number;
}

type World = Awaited<ReturnType<typeof startWorld>>;

/** Asks for everything at and above the head, and notes what is invented. */
const watchAnswers = async (t: TestContext, { service, nodes }: World, ending: AbortSignal): Promise<Seen> => {
  const seen: Seen = { answers: 0, forged: [], stepsBack: [], healthMs: 0 };
  let highest = 0n;
  const note = (what: string, value: unknown): void => {
    seen.answers++;
    if (isForgedText(JSON.stringify(value) ?? "")) {
      seen.forged.push(`${what}: ${JSON.stringify(value).slice(0, 120)}`);
    }
  };
  const ask = async (method: string, ...params: readonly unknown[]): Promise<unknown> => {
    const { body } = await rpc(service.url, method, params);
    note(`${method} ${JSON.stringify(params)}`, body);
    return body.result;
  };
  const askAbove = async (method: string, ...params: readonly unknown[]): Promise<void> => {
    const { body } = await rpc(service.url, method, params);
    const { number = "0x0" } = Object(body.result);
    if (BigInt(String(number)) > BigInt(String(await ask("eth_blockNumber")))) {
      note(`${method} ${JSON.stringify(params)}`, body);
    }
  };
  const socket = await connectSocket(service.url);
  t.after(() => socket.close());
  const events = [await socket.subscribe("newHeads"), await socket.subscribe("logs", { address: EMITTER })];
  const filters = [await ask("eth_newBlockFilter"), await ask("eth_newFilter", { address: EMITTER })];
  const health = watchHealth(service.opsUrl);
  while (!ending.aborted) {
    const head = BigInt(String(await ask("eth_blockNumber")));
    if (head < highest) {
      seen.stepsBack.push(`${highest} -> ${head}`);
    }
    highest = head > highest ? head : highest;
    const above = `0x${(head + 1n).toString(16)}`;
    const invented = nodes.flatMap(({ chain }) => chain.blocks.slice(-1)).filter(({ number }) => number > head + 1n);
    await Promise.all([
      ask("eth_getBlockByNumber", "latest", true),
      ask("eth_getBalance", HOLDER, "latest"),
      ask("eth_getBalance", HOLDER, above),
      ask("eth_getBlockByNumber", above, true),
      ask("eth_getBlockReceipts", above),
      ask("eth_getBlockReceipts", "latest"),
      ask("eth_getLogs", { address: EMITTER, fromBlock: `0x${(head - 3n).toString(16)}`, toBlock: "latest" }),
      ask("eth_getBlockByNumber", "finalized", false),
      ...invented.flatMap(({ hash, transaction }) => [
        // Once the head has passed its number, a block beside the chain is an answer to its own hash.
        askAbove("eth_getBlockByHash", hash, true),
        ask("eth_getTransactionReceipt", transaction),
        ask("eth_getTransactionByHash", transaction),
      ]),
      ...filters.map((id) => ask("eth_getFilterChanges", id)),
      health.probe(),
      sleep(ASK_EVERY_MS),
    ]);
  }
  for (const list of events) {
    note("event", list);
  }
  seen.healthMs = await health.end();
  return seen;
};

const play = async (t: TestContext, scenario: Scenario): Promise<Seen> => {
  const world = await startWorld(t, scenario);
  const { service, step } = world;
  const ending = new AbortController();
  const watch = watchAnswers(t, world, ending.signal);
  const endMs = performance.now() + RUN_MS;
  const first = await metric(service.opsUrl, "forebay_head", 'tag="latest"');
  while (performance.now() < endMs) {
    step();
    await sleep(BLOCK_MS);
  }
  const { label = "agreed", isContradicted = false } = scenario;
  // Nodes that fail, or that are silent, cost one wait. Then the head goes on.
  await until(async () => {
    step();
    await sleep(BLOCK_MS);
    const { headers } = await rpc(service.url, "eth_blockNumber");
    const contradicted = await metric(service.opsUrl, "forebay_heads_contradicted");
    return headers.get("x-forebay-head") === label && contradicted === (isContradicted ? 1 : 0);
  }, `the label is ${label}`);
  const last = await metric(service.opsUrl, "forebay_head", 'tag="latest"');
  ending.abort();
  const seen = await watch;
  assert.ok(last > first + 4, `the head goes on: from ${first} to ${last}`);
  assert.ok(seen.answers > 20, `${seen.answers} answers`);
  if (scenario.mayServeForged !== true) {
    assert.deepEqual(seen.forged.slice(0, 3), [], `${seen.forged.length} of ${seen.answers} answers are invented`);
  }
  if (scenario.mayReorganise !== true) {
    assert.deepEqual(seen.stepsBack, []);
  }
  return seen;
};

describe("an invented head is never served where a majority of honest origins is usable", { concurrency: 4 }, () => {
  for (const scenario of SCENARIOS) {
    test(scenario.name, async (t) => {
      await play(t, scenario);
    });
  }
});

test("/healthz answers in time while a node invents a chain", async (t) => {
  const { healthMs } = await play(t, { name: "alone", nodes: 3, acts: { 1: inventChain(60) } });
  assert.ok(healthMs < HEALTH_LIMIT_MS, `/healthz was delayed by ${healthMs} ms`);
});
