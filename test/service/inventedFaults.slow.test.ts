import assert from "node:assert/strict";
import { describe, type TestContext, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { rpc } from "../support/clients/rpc.ts";
import { connectSocket } from "../support/clients/socketClient.ts";
import { until } from "../support/clients/until.ts";
import { createFakeNode, type FakeNode } from "../support/fakes/fakeNode.ts";
import { FakeError } from "../support/fakes/front.ts";
import { QUOTES, quotingHandlers, TEXTS } from "../support/fakes/quotedErrors.ts";
import { createService, type Service } from "../support/servers/service.ts";
import { BranchedChain, isForgedText } from "../truth/chain/branchedChain.ts";

const HEIGHT = 40;
const BLOCK_MS = 500;
const RUN_MS = 24_000;
const ASK_EVERY_MS = 50;
const MAX_IN_FLIGHT = 20;

type Handlers = Readonly<Record<string, (params: readonly unknown[]) => unknown>>;

/** What honest nodes do after each block. `turn` counts the blocks since the start, `index` the honest nodes. */
type Hardship = (node: FakeNode, turn: number, index: number) => void;

const answerIn = (node: FakeNode, isFaulty: boolean, answer: "hang" | number): void => {
  node.faults.answer = isFaulty ? answer : undefined;
  if (!isFaulty) {
    node.release();
  }
};

const FAILING = "fail 90 % of their calls";

/** Heads of two honest origins arrive within 15 s. */
const HARDSHIPS: Readonly<Record<string, Hardship>> = {
  "are well": () => undefined,
  "limit the rate": (node, turn, index) => answerIn(node, (turn + index) % 4 !== 0, 429),
  "hang for seconds": (node, turn, index) => answerIn(node, (turn + 4 * index) % 16 < 13, "hang"),
  "take 2 and 6 s": ({ faults }, _, index) => {
    faults.delayMs = index === 0 ? 2_000 : 6_000;
  },
  [FAILING]: () => undefined,
};

/** One call of ten of each kind is answered: so many heads arrive in 15 s. */
const failing = (handlers: Handlers, position: number, isFailing: () => boolean): Handlers =>
  Object.fromEntries(
    Object.entries(handlers).map(([name, handler]) => {
      const counts = new Map<string, number>();
      return [
        name,
        (params: readonly unknown[]) => {
          const kind = params[0] === "latest" ? "latest" : "other";
          const count = counts.get(kind) ?? position;
          counts.set(kind, count + 1);
          if (isFailing() && count % 10 !== 0) {
            throw new FakeError(-32_603, "something that nobody has ever seen");
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
}

const startWorld = async (t: TestContext, origins: number, name: string, hardship: Hardship): Promise<World> => {
  const honest = new BranchedChain(HEIGHT, 1);
  const eth_chainId = () => `0x${honest.chainId.toString(16)}`;
  let contractText = "";
  let turn = 0;
  const nodes = await Promise.all(
    Array.from({ length: origins }, async (_, index) => {
      const chain = honest.copy();
      const isFailing = () => index > 0 && name === FAILING && turn > 0;
      const handlers = failing({ eth_chainId, ...chain.handlers() }, index, isFailing);
      const fake = await createFakeNode({ chain, handlers: { ...handlers, ...quotingHandlers(() => contractText) } });
      t.after(() => fake.close());
      return { chain, fake };
    }),
  );
  const service = await createService({
    nodes: nodes.map(({ fake: { url } }) => ({ url })),
    blockTimeMs: BLOCK_MS,
    pending: { mode: "native" },
    simulate: { enabled: false },
  });
  t.after(() => service.close());
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
        hardship(fake, turn, index - 1);
      }
    }
  };
  const heal = (): void => {
    for (const { fake } of nodes) {
      Object.assign(fake.faults, { answer: undefined, delayMs: undefined });
      fake.release();
    }
  };
  return { service, step, heal };
};

interface Seen {
  answers: number;
  readonly forged: string[];
  readonly heads: readonly unknown[];
}

/** Asks for the head, and sends each kind of call whose error quotes the client. */
const watchHeads = async (t: TestContext, { url }: Service, ending: AbortSignal): Promise<Seen> => {
  const socket = await connectSocket(url);
  t.after(() => socket.close());
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
  return seen;
};

describe("the head is honest while honest nodes have faults, and a client makes them quote its words", {
  concurrency: 5,
}, () => {
  for (const origins of [3, 4]) {
    for (const [name, hardship] of Object.entries(HARDSHIPS)) {
      test(`one of ${origins} origins invents a child of each block, and the honest ones ${name}`, async (t) => {
        const { service, step, heal } = await startWorld(t, origins, name, hardship);
        const ending = new AbortController();
        const watch = watchHeads(t, service, ending.signal);
        const endMs = performance.now() + RUN_MS;
        while (performance.now() < endMs) {
          step();
          await sleep(BLOCK_MS);
        }
        // From now on the chain pauses: after 15 s the one that goes on would decide.
        ending.abort();
        heal();
        const { answers, forged, heads } = await watch;
        const events = heads.filter((head) => isForgedText(JSON.stringify(head)));
        assert.deepEqual([forged[0], events.length], [undefined, 0], `${forged.length} of ${answers} answers`);
        assert.ok(answers > 100, `${answers} answers`);
        assert.ok(heads.length > 8, `${heads.length} heads`);
        t.diagnostic(`${answers} answers, ${heads.length} heads of ${Math.floor(RUN_MS / BLOCK_MS)} blocks`);
      });
    }
  }
});
