import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { rpc } from "../support/clients/rpc.ts";
import { connectSocket } from "../support/clients/socketClient.ts";
import { until } from "../support/clients/until.ts";
import { createFakeNode, type FakeNode } from "../support/fakes/fakeNode.ts";
import { FakeError } from "../support/fakes/front.ts";
import { QUOTES, quotingHandlers, TEXTS } from "../support/fakes/quotedErrors.ts";
import { createService, type Service } from "../support/servers/service.ts";
import { BranchedChain, isForgedText } from "../world/chain/branchedChain.ts";

const HEIGHT = 40;
const BLOCK_MS = 500;
const WHOLE_SECONDS = 24;
const ASK_EVERY_MS = 50;
const MAX_IN_FLIGHT = 20;

type Handlers = Readonly<Record<string, (params: readonly unknown[]) => unknown>>;

/** What honest nodes do after each block. `turn` counts the blocks since the start, `index` the honest nodes. */
type Hardship = (node: FakeNode, turn: number, index: number) => void;

const hangIf = (node: FakeNode, isHanging: boolean): void => {
  node.faults.answer = isHanging ? "hang" : undefined;
  if (!isHanging) {
    node.release();
  }
};

/** Heads of two honest origins arrive within 15 s. */
const HARDSHIPS: Readonly<Record<string, Hardship>> = {
  "are well": () => undefined,
  "hang for seconds": (node, turn, index) => hangIf(node, (turn + 4 * index) % 16 < 13),
  "take 2 and 6 s": ({ faults }, _, index) => {
    faults.delayMs = index === 0 ? 2_000 : 6_000;
  },
};

interface Failure {
  /** The nodes answer one call of so many of each kind. */
  readonly oneOf: number;
  /** What they return to the others. */
  readonly error: FakeError;
}

/** What honest nodes do by count: a rate that recovers by time could recover between polls alone. Heads arrive within 15 s. */
const FAILURES: Readonly<Record<string, Failure>> = {
  "limit the rate": { oneOf: 4, error: new FakeError(-32_005, "too many requests") },
  "fail 90 % of their calls": { oneOf: 10, error: new FakeError(-32_603, "something that nobody has ever seen") },
};

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

interface World {
  readonly service: Service;
  /** Mines an honest block. The first origin invents a child of it. */
  step(): void;
  /** Ends the faults, so that no request is left. */
  heal(): void;
  close(): Promise<void>;
}

const startWorld = async (origins: number, name: string): Promise<World> => {
  const honest = new BranchedChain(HEIGHT, 1);
  const eth_chainId = () => `0x${honest.chainId.toString(16)}`;
  const failure = FAILURES[name];
  let contractText = "";
  let turn = 0;
  const nodes = await Promise.all(
    Array.from({ length: origins }, async (_, index) => {
      const chain = honest.copy();
      const well = { eth_chainId, ...chain.handlers() };
      const handlers = failure === undefined || index === 0 ? well : failing(well, index, failure, () => turn > 0);
      const fake = await createFakeNode({ chain, handlers: { ...handlers, ...quotingHandlers(() => contractText) } });
      return { chain, fake };
    }),
  );
  const service = await createService({
    nodes: nodes.map(({ fake: { url } }) => ({ url })),
    blockTimeMs: BLOCK_MS,
    pending: { mode: "native" },
    forks: "none",
  });
  const [chain] = service.chains;
  await until(() => chain?.upstreams.nodes.every(({ head }) => head !== undefined) === true, "all nodes are known");
  const step = (): void => {
    turn++;
    contractText = TEXTS[turn % TEXTS.length] ?? "";
    honest.mine();
    for (const [index, { chain, fake }] of nodes.entries()) {
      chain.follow(honest);
      if (index === 0) {
        chain.mine(1, true);
      } else {
        HARDSHIPS[name]?.(fake, turn, index - 1);
      }
    }
  };
  const heal = (): void => {
    for (const { fake } of nodes) {
      Object.assign(fake.faults, { answer: undefined, delayMs: undefined });
      fake.release();
    }
  };
  const close = async (): Promise<void> => {
    await service.close();
    await Promise.all(nodes.map(({ fake }) => fake.close()));
  };
  return { service, step, heal, close };
};

interface Seen {
  answers: number;
  readonly forged: string[];
  readonly heads: readonly unknown[];
}

/** Asks for the head, and sends each kind of call whose error quotes the client. */
const watchHeads = async ({ url }: Service, ending: AbortSignal): Promise<Seen> => {
  const socket = await connectSocket(url);
  const heads = await socket.subscribe("newHeads");
  const seen: Seen = { answers: 0, forged: [], heads };
  let inFlight = 0;
  const ask = async (method: string, params: readonly unknown[]): Promise<void> => {
    inFlight++;
    const { body } = await rpc(url, method, params).finally(() => inFlight--);
    const text = JSON.stringify(body);
    seen.answers += body.error === undefined ? 1 : 0;
    if (isForgedText(text)) {
      seen.forged.push(text.slice(0, 120));
    }
  };
  const asked: Promise<void>[] = [];
  for (let turn = 0; !ending.aborted; turn++) {
    const text = TEXTS[turn % TEXTS.length] ?? "";
    const [method, { params }] = Object.entries(QUOTES)[turn % 4] ?? assert.fail();
    if (inFlight < MAX_IN_FLIGHT) {
      asked.push(ask("eth_getBlockByNumber", ["latest", false]), ask("eth_blockNumber", []));
      asked.push(ask(method, params(text)));
    }
    await sleep(ASK_EVERY_MS);
  }
  await Promise.all(asked);
  socket.close();
  return seen;
};

const run = async (origins: number, name: string, seconds: number) => {
  const { service, step, heal, close } = await startWorld(origins, name);
  const ending = new AbortController();
  const watch = watchHeads(service, ending.signal);
  const endMs = performance.now() + seconds * 1_000;
  while (performance.now() < endMs) {
    step();
    await sleep(BLOCK_MS);
  }
  // From now on the chain pauses: after 15 s the one that goes on would decide.
  ending.abort();
  heal();
  const { answers, forged, heads } = await watch;
  await close();
  const forgedHeads = heads.filter((head) => isForgedText(JSON.stringify(head))).length;
  const world = `one of ${origins} invents blocks, the others ${name}`;
  return { world, answers, heads: heads.length, forged: forged.length, forgedHeads, first: forged[0] };
};

/**
 * One of three or four origins invents a child of each block. The honest ones have faults, and a client makes them quote its words.
 * No invented block is served while heads of two honest origins arrive within 15 s.
 */
export const long = async ({ seconds = WHOLE_SECONDS }: { readonly seconds: number | undefined }) => {
  const names = [...Object.keys(HARDSHIPS), ...Object.keys(FAILURES)];
  const runs = [];
  for (const origins of [3, 4]) {
    runs.push(...(await Promise.all(names.map((name) => run(origins, name, seconds)))));
  }
  const passed = runs.every((each) => each.forged + each.forgedHeads === 0 && each.answers > 0 && each.heads > 0);
  return { name: "invented-faults", passed, runs };
};
