import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { after, type TestContext, test } from "node:test";
import { z } from "zod";
import { FairGate } from "../../src/limits/fairGate.ts";
import type { QueueOwner } from "../../src/limits/fairQueue.ts";
import { startAnvil } from "../devnet/anvil.ts";
import { metric, rpc } from "../support/clients/rpc.ts";
import { until } from "../support/clients/until.ts";
import { forwardTo, startFront } from "../support/fakes/front.ts";
import { startLyingNode } from "../support/fakes/lyingNode.ts";
import { startCommand } from "../support/servers/command.ts";
import { createService } from "../support/servers/service.ts";

const anvil = await startAnvil(["--hardfork", "prague", "--no-mining"]);
after(() => anvil.close());

/** Reads the slots from 0 to 1,799. */
const MANY_SLOTS = "0x5f5b8054506001018061070811600157";
/** Reads the balances of the addresses 0, 1, 2 ... until it runs out of gas. */
const ENDLESS_BALANCES = "0x5f5b803150600101600156";
const CONTRACT = `0x${"c0".repeat(20)}`;
/** Nothing is prefetched for a payload of this size, so that each value is read by its own call. */
const LONG_DATA = `0x${"00".repeat(20_000)}`;
const CHAIN = { blockTimeMs: 1_000, pending: { mode: "node" }, forks: "prague" } as const;
/** More than the polls of heads, and the first reads of a chain, during a test. */
const POLLS = 50;
const DEFAULT_MAX_READS = 2_000;

const tooManyReads = (maxReads: number): string =>
  `execution aborted: the request reads more than ${maxReads} state values from nodes (simulate.maxStateReads)`;

/** Returns code that reads the balances of a number of addresses, which are others for each index. */
const balancesOf = (count: number, index: number): string => {
  const first = 0x100_0000 * (index + 1);
  const wordOf = (value: number): string => value.toString(16).padStart(8, "0");
  return `0x63${wordOf(first)}5b8031506001018063${wordOf(first + count)}11600557`;
};

/** Returns the beginning of the addresses of an index. */
const addressPrefix = (index: number): string => `"0x${(index + 1).toString(16).padStart(34, "0")}`;

const simulationOf = (code: string, data = LONG_DATA) => ({
  blockStateCalls: [{ stateOverrides: { [CONTRACT]: { code } }, calls: [{ to: CONTRACT, data }] }],
});

test("a simulation that reads too many values ends with an error before it reads them", async (t) => {
  const proxy = await startLyingNode(t, anvil.url);
  const maxStateReads = 200;
  const service = await createService({ ...CHAIN, nodes: [{ url: proxy.url }], simulate: { maxStateReads } });
  t.after(() => service.close());
  const before = proxy.total;
  const { body } = await rpc(service.url, "eth_simulateV1", [simulationOf(ENDLESS_BALANCES), "latest"]);
  assert.deepEqual(body.error, {
    code: -32_000,
    message: tooManyReads(maxStateReads),
  });
  const calls = proxy.total - before;
  t.diagnostic(`${calls} node calls`);
  assert.ok(calls < maxStateReads + POLLS, `${calls} node calls`);
  assert.equal(await metric(service.opsUrl, "forebay_simulate_state_read_limit_total"), 1);
});

test("a small request makes few calls to nodes before it ends with an error", async (t) => {
  const proxy = await startLyingNode(t, anvil.url);
  const service = await createService({ ...CHAIN, nodes: [{ url: proxy.url }] });
  t.after(() => service.close());
  const before = proxy.total;
  const { body } = await rpc(service.url, "eth_simulateV1", [simulationOf(ENDLESS_BALANCES, "0x"), "latest"]);
  assert.equal(body.error?.message, tooManyReads(DEFAULT_MAX_READS));
  const calls = proxy.total - before;
  t.diagnostic(`${calls} node calls`);
  assert.ok(calls <= DEFAULT_MAX_READS + POLLS, `${calls} node calls`);
});

test("the items of a batch share one limit of state reads", async (t) => {
  const proxy = await startLyingNode(t, anvil.url);
  const service = await createService({ ...CHAIN, nodes: [{ url: proxy.url }] });
  t.after(() => service.close());
  const before = proxy.total;
  const items = Array.from({ length: 10 }, (_, index) => ({
    ...{ jsonrpc: "2.0", id: index, method: "eth_simulateV1" },
    params: [simulationOf(balancesOf(300, index)), "latest"],
  }));
  const headers = { "content-type": "application/json" };
  const response = await fetch(service.url, { method: "POST", headers, body: JSON.stringify(items) });
  const answers = (await response.json()) as readonly { readonly error?: { readonly message: string } }[];
  const failed = answers.flatMap(({ error }) => error?.message ?? []);
  assert.deepEqual([...new Set(failed)], [tooManyReads(DEFAULT_MAX_READS)]);
  const calls = proxy.total - before;
  t.diagnostic(`${calls} node calls, ${failed.length} of ${answers.length} failed`);
  assert.ok(failed.length < answers.length);
  assert.ok(calls <= DEFAULT_MAX_READS + POLLS, `${calls} node calls`);
  const again = await rpc(service.url, "eth_simulateV1", [simulationOf(balancesOf(300, 11)), "latest"]);
  assert.equal(again.body.error, undefined);
});

test("a simulation finds all values that it may read, however small the cache of state is", async (t) => {
  const service = await createService({ ...CHAIN, nodes: [{ url: anvil.url }], state: { cacheBytes: 0 } });
  t.after(() => service.close());
  const contract = `0x${"c1".repeat(20)}`;
  await anvil.call("anvil_setCode", contract, MANY_SLOTS);
  await anvil.call("evm_mine");
  await service.chains[0]?.upstreams.heads.refresh();
  // A trace of the call returns all slots at once.
  const payload = { blockStateCalls: [{ calls: [{ to: contract }] }] };
  const { body } = await rpc(service.url, "eth_simulateV1", [payload, "latest"]);
  assert.equal(body.error, undefined, JSON.stringify(body.error));
  const [{ calls }] = body.result as [{ readonly calls: readonly [{ readonly status: string }] }];
  assert.equal(calls[0].status, "0x1");
});

test("state reads of a simulation count against the client's rate limit", async (t) => {
  const service = await createService(
    { ...CHAIN, nodes: [{ url: anvil.url }] },
    { access: { limitPerAddress: { calls: 40, seconds: 600 } } },
  );
  t.after(() => service.close());
  const calls = Array.from({ length: 50 }, (_, index) => ({
    to: `0x${(index + 0x1000).toString(16).padStart(40, "0")}`,
    ...(index === 0 && { data: LONG_DATA }),
  }));
  const simulated = await rpc(service.url, "eth_simulateV1", [{ blockStateCalls: [{ calls }] }, "latest"]);
  assert.equal(simulated.body.error, undefined, simulated.text);
  assert.ok((await metric(service.opsUrl, "forebay_access_charged_total", 'reason="stateReads"')) >= calls.length);
  assert.equal((await rpc(service.url, "eth_chainId")).status, 429);
});

test("state reads of a simulation are spent by its key", async (t) => {
  const key = { name: "wallet", sha256: createHash("sha256").update("k1").digest("hex") };
  const { url } = await startCommand(t, {
    chains: [{ name: "chain", ...CHAIN, nodes: [{ url: anvil.url }] }],
    access: { keys: [{ ...key, limit: { unitsPerDay: 100 } }] },
    usage: { prices: "calls" },
  });
  const headers = { "x-api-key": "k1" };
  // Each account is three reads.
  const params = [simulationOf(balancesOf(100, 21)), "latest"];
  const simulated = await rpc(url, "eth_simulateV1", params, { ...headers, "x-forebay-units": "1" });
  assert.equal(simulated.body.error, undefined, simulated.text);
  const spent = /^spent=(\d+), saved=0$/.exec(simulated.headers.get("x-forebay-units") ?? "")?.[1];
  assert.ok(Number(spent) >= 300 && Number(spent) < 300 + POLLS, `${spent}`);
  let refused = simulated;
  await until(async () => {
    refused = await rpc(url, "eth_chainId", [], headers);
    return refused.status === 429;
  }, "the key has spent its units");
  const { error } = z.object({ error: z.object({ data: z.object({ spentUnits: z.number() }) }) }).parse(refused.body);
  assert.ok(error.data.spentUnits >= 300 && error.data.spentUnits < 300 + POLLS, refused.text);
});

/** Calls of state reads in flight. They are sent in parts of two HTTP requests. */
const MAX_CALLS = 1_600;
const PART_CALLS = 100;
const PART_REQUESTS = 2;
/** More than the turns that a modest client waits for, and less than the parts that another one has left. */
const MAX_TURNS = 12;
const MODEST_CLIENT = "203.0.113.2";
/** The indexes of runs: see balancesOf. */
const [WARMING, GREEDY, MODEST] = [[1, 2, 3], [4, 5], 6];

/** Watches the gate of state reads. Returns the number of reads of the modest client that wait for a turn. */
const watchModest = (t: TestContext): (() => number) => {
  let waiting = 0;
  const { run } = FairGate.prototype;
  t.mock.method(FairGate.prototype, "run", function <T>(this: FairGate, owner: QueueOwner, task: () => Promise<T>) {
    if (owner.clientId !== MODEST_CLIENT) {
      return run.call(this, owner, task);
    }
    waiting++;
    return run.call(this, owner, () => {
      waiting--;
      return task();
    });
  });
  return () => waiting;
};

test("state reads of one client in flight are limited, and another client's come next", async (t) => {
  const held: { readonly index: number; readonly calls: number; release(): void }[] = [];
  let heldIndexes: readonly number[] = WARMING;
  const front = await startFront(async (body) => {
    const index = heldIndexes.find((each) => body.includes(addressPrefix(each)));
    if (index !== undefined) {
      const { promise, resolve } = Promise.withResolvers<void>();
      held.push({ index, calls: body.split('"method"').length - 1, release: resolve });
      await promise;
    }
    return forwardTo(anvil.url, body);
  });
  const service = await createService(
    { ...CHAIN, nodes: [{ url: front.url }], simulate: { workers: 4, timeoutMs: 60_000 } },
    { access: { trustedProxies: ["127.0.0.1"] } },
  );
  t.after(async () => {
    await service.close();
    await front.close();
  });
  const simulate = (client: string, code: string) =>
    rpc(service.url, "eth_simulateV1", [simulationOf(code), "latest"], { "x-forwarded-for": client });
  // Each has a thread of its own, so that no later run waits for the start of one.
  const first = WARMING.map((index) => simulate("203.0.113.3", balancesOf(5, index)));
  await until(() => new Set(held.map(({ index }) => index)).size === first.length, "the threads have started");
  heldIndexes = GREEDY;
  for (const { release } of held.splice(0)) {
    release();
  }
  await Promise.all(first);
  const greedy = GREEDY.map((index) => simulate("203.0.113.1", balancesOf(600, index)));
  const areInFlight = (): boolean => held.reduce((sum, { calls }) => sum + calls, 0) > MAX_CALLS - PART_CALLS;
  await until(areInFlight, "the reads of one client are in flight");
  let hasAnswer = false;
  const modestWaiting = watchModest(t);
  const modest = simulate(MODEST_CLIENT, balancesOf(5, MODEST)).then((answer) => {
    hasAnswer = true;
    return answer;
  });
  let parts = 0;
  for (; !hasAnswer && parts < MAX_TURNS; parts++) {
    await until(() => hasAnswer || modestWaiting() > 0, "the modest client waits");
    for (const { release } of held.splice(0, PART_REQUESTS)) {
      release();
    }
    await until(() => hasAnswer || areInFlight(), "the next part is sent");
    assert.ok(held.reduce((sum, { calls }) => sum + calls, 0) <= MAX_CALLS);
  }
  t.diagnostic(`${parts} parts of the other client ended before`);
  assert.ok(hasAnswer && held.length > 0);
  assert.equal((await modest).body.error, undefined);
  const release = setInterval(() => held.shift()?.release(), 1);
  const answers = await Promise.all(greedy);
  clearInterval(release);
  assert.deepEqual(
    answers.map(({ body }) => body.error),
    [undefined, undefined],
  );
});
