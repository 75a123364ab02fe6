import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { metric, rpc } from "../../support/clients/rpc.ts";
import { connectSocket } from "../../support/clients/socketClient.ts";
import { until } from "../../support/clients/until.ts";
import { createFakeNode } from "../../support/fakes/fakeNode.ts";
import { QUOTES, quotingHandlers, TEXTS } from "../../support/fakes/quotedErrors.ts";
import type { Lifespan } from "../../support/servers/redis.ts";
import { createService, type Service } from "../../support/servers/service.ts";
import { withLifespan } from "../../support/servers/withLifespan.ts";
import { BranchedChain, HOLDER, isForgedText } from "../chain/branchedChain.ts";
import { EMITTER } from "../chain/emitter.ts";
import type { Failure, InventedNode, InventedScenario } from "./inventedScenarios.ts";

const HEIGHT = 40;
const BLOCK_MS = 250;
/** A node that hangs has the head of a slower chain within 15 s. */
const HARD_BLOCK_MS = 500;
const ASK_EVERY_MS = 25;
const HARD_ROUNDS = 4;
const MIN_ANSWERS = 20;
const MIN_BLOCKS = 4;
/** In this time, the head goes on in a hard scenario too. */
const HARD_HEAD_MS = 20_000;

type Handlers = Readonly<Record<string, (params: readonly unknown[]) => unknown>>;

const failing = (handlers: Handlers, position: number, { oneOf, error }: Failure, isFailing: () => boolean): Handlers =>
  Object.fromEntries(
    Object.entries(handlers).map(([name, handler]) => {
      const counts = new Map<string, number>();
      return [
        name,
        (params: readonly unknown[]) => {
          const kind = params[0] === "latest" ? "latest" : "other";
          const count = counts.get(kind) ?? position;
          counts.set(kind, count + 1);
          if (isFailing() && count % oneOf !== 0) {
            throw error;
          }
          return handler(params);
        },
      ];
    }),
  );

interface InventedWorld {
  readonly service: Service;
  readonly nodes: readonly InventedNode[];
  readonly blockMs: number;
  /** Mines an honest block. Then each node acts. */
  step(): void;
  /** Ends the faults, so that no request is left. */
  heal(): void;
}

/** Starts the nodes, forebay in front of them, and the honest chain. */
const startWorld = async (t: Lifespan, scenario: InventedScenario): Promise<InventedWorld> => {
  const { nodes: count, providers = [], acts, failure, isHard = false } = scenario;
  const honest = new BranchedChain(HEIGHT, 1);
  const blockMs = isHard ? HARD_BLOCK_MS : BLOCK_MS;
  let turn = 0;
  const nodes = await Promise.all(
    Array.from({ length: count }, async (_, index): Promise<InventedNode> => {
      const chain = honest.copy();
      const well = { eth_chainId: () => `0x${chain.chainId.toString(16)}`, ...chain.handlers() };
      const handlers = failure === undefined || index === 0 ? well : failing(well, index, failure, () => turn > 0);
      const quoting = quotingHandlers(() => TEXTS[turn % TEXTS.length] ?? "");
      const fake = await createFakeNode({ chain, handlers: { ...handlers, ...(isHard && quoting) } });
      t.after(() => fake.close());
      return { chain, fake };
    }),
  );
  const service = await createService({
    nodes: nodes.map(({ fake: { url, wsUrl } }, index) => ({
      ...{ url, ...(!isHard && { wsUrl }) },
      ...(providers[index] !== undefined && { provider: providers[index] }),
    })),
    ...{ blockTimeMs: blockMs, pending: { mode: "native" } },
    ...(isHard && { forks: "none" }),
  });
  t.after(() => service.close());
  const known = service.chains[0]?.upstreams.nodes ?? [];
  await until(() => known.every(({ head }) => head !== undefined), "all nodes are known");
  const step = (): void => {
    turn++;
    honest.mine();
    for (const [index, node] of nodes.entries()) {
      const act = acts[index] ?? (({ chain }) => chain.follow(honest));
      act(node, { honest, turn });
    }
  };
  const heal = (): void => {
    for (const { fake } of nodes) {
      Object.assign(fake.faults, { answer: undefined, delayMs: undefined });
      fake.release();
    }
  };
  return { service, nodes, blockMs, step, heal };
};

interface Seen {
  answers: number;
  readonly forged: string[];
  readonly stepsBack: string[];
}

const assertHealthy = async ({ opsUrl }: Service): Promise<void> => {
  assert.equal((await fetch(`${opsUrl}/healthz`)).status, 200);
};

/** Asks for everything at and above the head, and notes what is invented. */
class InventedWatch {
  readonly seen: Seen = { answers: 0, forged: [], stepsBack: [] };
  readonly #world: InventedWorld;
  #highest = 0n;
  #rounds = 0;

  constructor(world: InventedWorld) {
    this.#world = world;
  }

  async run(isHard: boolean, ending: AbortSignal): Promise<Seen> {
    const { service } = this.#world;
    const socket = await connectSocket(service.url);
    const events = [await socket.subscribe("newHeads"), await socket.subscribe("logs", { address: EMITTER })];
    const filters = [await this.#ask("eth_newBlockFilter"), await this.#ask("eth_newFilter", { address: EMITTER })];
    const rounds = new Set<Promise<unknown>>();
    while (!ending.aborted) {
      if (rounds.size < (isHard ? HARD_ROUNDS : 1)) {
        const round: Promise<unknown> = this.#round(filters, isHard).finally(() => rounds.delete(round));
        rounds.add(round);
      }
      await Promise.all([assertHealthy(service), sleep(ASK_EVERY_MS)]);
    }
    await Promise.all(rounds);
    for (const list of events) {
      this.#note("event", list);
    }
    socket.close();
    return this.seen;
  }

  async #round(filters: readonly unknown[], quotes: boolean): Promise<void> {
    const head = BigInt(String(await this.#ask("eth_blockNumber")));
    if (head < this.#highest) {
      this.seen.stepsBack.push(`${this.#highest} -> ${head}`);
    }
    this.#highest = head > this.#highest ? head : this.#highest;
    const above = `0x${(head + 1n).toString(16)}`;
    const invented = this.#world.nodes
      .flatMap(({ chain }) => chain.blocks.slice(-1))
      .filter(({ number }) => number > head + 1n);
    const ask = (method: string, ...params: readonly unknown[]) => this.#ask(method, ...params);
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
        this.#askAbove("eth_getBlockByHash", hash, true),
        ask("eth_getTransactionReceipt", transaction),
        ask("eth_getTransactionByHash", transaction),
      ]),
      ...filters.map((id) => ask("eth_getFilterChanges", id)),
      ...(quotes ? [this.#askQuoting()] : []),
    ]);
  }

  /** Sends a call whose error quotes the client. */
  #askQuoting(): Promise<unknown> {
    const turn = this.#rounds++;
    const quotes = Object.entries(QUOTES);
    const [method, quote] = quotes[turn % quotes.length] ?? [];
    return method === undefined || quote === undefined
      ? Promise.resolve()
      : this.#ask(method, ...quote.params(TEXTS[turn % TEXTS.length] ?? ""));
  }

  async #ask(method: string, ...params: readonly unknown[]): Promise<unknown> {
    const { body } = await rpc(this.#world.service.url, method, params);
    this.#note(`${method} ${JSON.stringify(params)}`, body);
    return body.result;
  }

  async #askAbove(method: string, ...params: readonly unknown[]): Promise<void> {
    const { body } = await rpc(this.#world.service.url, method, params);
    const { number = "0x0" } = Object(body.result);
    if (BigInt(String(number)) > BigInt(String(await this.#ask("eth_blockNumber")))) {
      this.#note(`${method} ${JSON.stringify(params)}`, body);
    }
  }

  #note(what: string, value: unknown): void {
    this.seen.answers += Object(value).error === undefined ? 1 : 0;
    if (isForgedText(JSON.stringify(value) ?? "")) {
      this.seen.forged.push(`${what}: ${JSON.stringify(value).slice(0, 120)}`);
    }
  }
}

/**
 * Waits until the head has passed some blocks, and the answers have the label of the scenario. Nodes that fail, or are silent, cost
 * one wait: then the head goes on.
 */
const untilLabelled = (
  { service, step, blockMs }: InventedWorld,
  { label = "agreed", isContradicted }: InventedScenario,
  hasPassed: () => Promise<boolean>,
): Promise<void> =>
  until(async () => {
    step();
    await sleep(blockMs);
    const { headers } = await rpc(service.url, "eth_blockNumber");
    const contradicted = await metric(service.opsUrl, "forebay_heads_contradicted");
    const isLabelled = headers.get("x-forebay-head") === label && contradicted === (isContradicted === true ? 1 : 0);
    return isLabelled && (await hasPassed());
  }, `the label is ${label}`);

/** Plays a scenario for a time. Returns what a client saw, and how it breaks the promise. */
export const playInvented = (scenario: InventedScenario, ms: number) =>
  withLifespan(async (t) => {
    const { isHard = false, mayServeForged, mayReorganise } = scenario;
    const world = await startWorld(t, scenario);
    const { service, blockMs, step, heal } = world;
    const ending = new AbortController();
    const watch = new InventedWatch(world);
    const ended = watch.run(isHard, ending.signal);
    const head = () => metric(service.opsUrl, "forebay_head", 'tag="latest"');
    const first = await head();
    const endMs = performance.now() + ms;
    // Nodes that take seconds give few answers in a short run.
    while (performance.now() < endMs || watch.seen.answers <= MIN_ANSWERS) {
      step();
      await sleep(blockMs);
    }
    if (!isHard) {
      await untilLabelled(world, scenario, async () => (await head()) - first > MIN_BLOCKS);
    }
    const last = await head();
    ending.abort();
    heal();
    const { answers, forged, stepsBack } = await ended;
    const isStuck = isHard && ms >= HARD_HEAD_MS && last <= first;
    const faults = [
      ...(isStuck ? [`the head stayed at ${first}`] : []),
      ...(mayServeForged === true ? [] : forged.slice(0, 3)),
      // Rounds of a hard scenario overlap.
      ...(mayReorganise === true || isHard ? [] : stepsBack),
    ];
    return { name: scenario.name, answers, blocks: last - first, forged: forged.length, faults };
  });
