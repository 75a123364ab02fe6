import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { metric } from "../support/clients/rpc.ts";
import { settled } from "../support/clients/settled.ts";
import { until } from "../support/clients/until.ts";
import type { AnswerLie } from "../support/fakes/answerLie.ts";
import { type Lie, type LyingNode, startLyingNode } from "../support/fakes/lyingNode.ts";
import { type Lifespan, type RedisServer, startRedis } from "../support/servers/redis.ts";
import { type ChainCall, createSealedChain, type SealedChain } from "../support/servers/sealedChain.ts";
import { createService, type Service } from "../support/servers/service.ts";
import { answerLies } from "./answerLies.ts";

const BYPASS = "x-fresh";
const SLOWER_MS = 30;
const TRANSFER = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef";

let chain: SealedChain;

interface Response {
  readonly result?: unknown;
  readonly error?: { readonly code: number; readonly message: string };
}

const post = async (url: string, body: unknown, headers: Readonly<Record<string, string>> = {}): Promise<unknown> => {
  const response = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify(body),
  });
  return response.json();
};
const ask = async (url: string, { method, params }: ChainCall, headers?: Readonly<Record<string, string>>) =>
  (await post(url, { jsonrpc: "2.0", id: 1, method, params }, headers)) as Response;

const truthOf = ({ method, params }: ChainCall): Promise<unknown> => chain.devnet.rpc(method, ...params);

/** Passes each check once before a node lies. A failure of a check that never passed is not certain. */
const prove = async (service: Service, before?: ChainCall): Promise<void> => {
  const [, , { number = "" } = {}] = chain.final;
  for (const call of [
    { method: "eth_getBlockByNumber", params: [number, true] },
    { method: "eth_getBlockReceipts", params: [number] },
    ...(before ? [before] : []),
  ]) {
    assert.deepEqual((await ask(service.url, call)).result, await truthOf(call));
  }
};

let redis: RedisServer;
let databases = 0;
const ending: (() => unknown)[] = [];
const lifespan = { after: (end: () => unknown) => ending.unshift(end) };

before(async () => {
  chain = await createSealedChain();
  lifespan.after(() => chain.devnet.close());
  redis = await startRedis(lifespan, { args: ["--databases", "1000"] });
});
after(async () => {
  for (const end of ending) {
    await end();
  }
});

interface Stage {
  readonly service: Service;
  /** Another replica with an empty memory cache: it shows the contents of Redis. */
  readonly replica: Service;
  readonly liar: LyingNode;
}

/** The honest node is slower, so that the other one is asked. */
const SLOWER: Lie = { name: "slower", result: (result) => sleep(SLOWER_MS, result) };

/** Starts a forebay in front of a node that will lie, and of an honest one if there are two. */
const start = async (t: Lifespan, hasHonest: boolean): Promise<Stage> => {
  const { anvilUrl } = chain.devnet;
  const [liar, honest] = await Promise.all([startLyingNode(t, anvilUrl), startLyingNode(t, anvilUrl)]);
  honest.lies = [SLOWER];
  const url = `${redis.url}/${databases++}`;
  const truthful = { name: "honest", url: honest.url };
  const nodes = [{ name: "liar", url: liar.url }, ...(hasHonest ? [truthful] : [])];
  const rest = { pending: { mode: "node" }, finality: { depth: 40 } } as const;
  /** Each service ends with the test, also if the other one does not start. */
  const serve = async (...args: Parameters<typeof createService>): Promise<Service> => {
    const service = await createService(...args);
    t.after(() => service.close());
    await settled(service);
    return service;
  };
  const [service, replica] = await Promise.all([
    serve({ nodes, ...rest }, { cache: { redis: url, bypassHeader: BYPASS } }),
    serve({ nodes: [truthful], ...rest }, { cache: { redis: url, memoryBytes: 0 } }),
  ]);
  return { service, replica, liar };
};

const failuresOf = ({ opsUrl }: Service, check: string): Promise<number> =>
  metric(opsUrl, "forebay_verify_failures_total", 'node="liar"', `check="${check}"`);

const isNamed = async (service: Service, check: string): Promise<void> => {
  const { opsUrl } = service;
  assert.ok((await failuresOf(service, check)) > 0, `no failure of ${check} is counted`);
  assert.equal(await metric(opsUrl, "forebay_upstream_suspended", 'node="liar"'), 1);
  assert.equal(await metric(opsUrl, "forebay_verify_failures_total", 'node="honest"'), 0);
  assert.equal(await metric(opsUrl, "forebay_verify_check_off"), 0);
};

/** Asserts that memory and Redis have only correct responses. */
const isCachedRight = async ({ service, replica }: Stage, call: ChainCall, truth: unknown): Promise<void> => {
  assert.deepEqual((await ask(service.url, call)).result, truth, "from memory");
  assert.deepEqual((await ask(replica.url, call)).result, truth, "from Redis");
};

const fromOneOfTwo = async (stage: Stage, { lie, call, before, check }: AnswerLie): Promise<void> => {
  const { service, liar } = stage;
  await prove(service, before);
  const truth = await truthOf(call);
  liar.lies = [lie];
  // Concurrent requests, so that both nodes get some.
  await until(async () => {
    const answers = await Promise.all(Array.from({ length: 4 }, () => ask(service.url, call, { [BYPASS]: "1" })));
    for (const answer of answers) {
      assert.deepEqual(answer, { jsonrpc: "2.0", id: 1, result: truth });
    }
    return (await failuresOf(service, check)) > 0;
  }, "a lie is found");
  await isCachedRight(stage, call, truth);
  await isNamed(service, check);
};

const fromTheOnly = async (stage: Stage, { lie, call, before, check }: AnswerLie): Promise<void> => {
  const { service, liar } = stage;
  await prove(service, before);
  const truth = await truthOf(call);
  liar.lies = [lie];
  const liedBefore = liar.lied.get(lie.name) ?? 0;
  const { result, error } = await ask(service.url, call);
  assert.ok((liar.lied.get(lie.name) ?? 0) > liedBefore, "it did not lie");
  assert.equal(result, undefined);
  assert.equal(error?.code, -32_603);
  assert.match(error?.message ?? "", /^the upstream response failed verification/);
  assert.ok(!error?.message.includes(liar.url));
  liar.lies = [];
  await isCachedRight(stage, call, truth);
  await isNamed(service, check);
};

/** Services that are started together: each waits for others in part of its start. */
const AT_ONCE = 10;
/** `npm test` runs each row of this number, and `npm run test:slow` the others. */
const QUICK_EVERY = 13;

/** Tests that no wrong response of a node is served or cached: the quick rows or the others. */
export const testWrongAnswers = (title: string, isQuick: boolean): void => {
  test(title, async (t) => {
    const rows = answerLies(chain, TRANSFER);
    assert.ok(rows.length >= 28);
    const tests = rows
      .filter((_, index) => (index % QUICK_EVERY === 0) === isQuick)
      .flatMap((row) => [
        { name: `${row.lie.name}: from one of two nodes`, row, hasHonest: true, run: fromOneOfTwo },
        { name: `${row.lie.name}: from the only node`, row, hasHonest: false, run: fromTheOnly },
      ]);
    for (let first = 0; first < tests.length; first += AT_ONCE) {
      const group = tests.slice(first, first + AT_ONCE);
      const ends: (() => unknown)[] = [];
      const stages = group.map(({ hasHonest }) => start({ after: (end) => ends.unshift(end) }, hasHonest));
      // A start that fails is a failure of its test. What the others have opened would hold the process.
      await Promise.allSettled(stages);
      for (const [index, { name, row, run }] of group.entries()) {
        await t.test(name, async () => {
          const stage = await stages[index];
          assert.ok(stage);
          await run(stage, row);
        });
      }
      await Promise.all(ends.map((end) => end()));
    }
  });
};

/** Tests that an item which is no JSON fails alone. */
export const testInvalidItem = (title: string): void => {
  test(title, async (t) => {
    const { service, liar } = await start(t, false);
    const [account = ""] = chain.accounts;
    const calls = ["eth_getCode", "eth_getBalance", "eth_getTransactionCount"].map((method, id) => ({
      ...{ jsonrpc: "2.0", id, method },
      params: [account, chain.final[0]?.number],
    }));
    const truth = await Promise.all(calls.map(truthOf));
    liar.lies = [
      {
        name: "a broken item",
        methods: ["eth_getBalance"],
        http: ({ status, text }) => ({ status, text: text.replace('"result":"0x', '"result":0x') }),
      },
    ];
    const answers = (await post(service.url, calls)) as readonly Response[];
    assert.deepEqual(
      answers.map(({ result }) => result),
      [truth[0], undefined, truth[2]],
    );
    assert.match(answers[1]?.error?.message ?? "", /^the upstream response failed verification \(json\)/);
    liar.lies = [];
    assert.deepEqual(((await post(service.url, calls)) as readonly Response[])[1]?.result, truth[1]);
  });
};
