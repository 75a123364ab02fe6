import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { readOptions } from "../../docs/configurationTable.ts";
import { longestWaitsMs } from "../../docs/retriesTable.ts";
import type { Clock } from "../../src/core/clock.ts";
import type { Context } from "../../src/core/context.ts";
import { NodeError, type NodeErrorKind } from "../../src/core/node.ts";
import { RETRY_LIMITS } from "../../src/core/retryPolicy.ts";
import type { NodeSource, RpcRequest } from "../../src/core/rpcSource.ts";
import { createCall } from "../../src/jsonrpc/call.ts";
import { retryOnBranchChange } from "../../src/methods/branchRetry.ts";
import { HangWatch } from "../../src/nodes/hangWatch.ts";
import { NodePool } from "../../src/nodes/nodePool.ts";
import { NodeRequests } from "../../src/nodes/nodeRequests.ts";
import type { UpstreamNode } from "../../src/nodes/upstreamNode.ts";
import { ANY, createSplit, range } from "../logs/askLogs.ts";
import { createFakeChain as createLogChain, fakeAddress, fakeHeads } from "../logs/fakeChain.ts";
import { createFakeLogNode } from "../logs/fakeLogNode.ts";
import { createContext, createRequest } from "../support/builders/request.ts";
import { silent } from "../support/builders/silent.ts";
import { createFakeChain } from "../support/fakes/fakeChain.ts";
import { createFakeClock } from "../support/fakes/fakeClock.ts";
import { createFakeHeads } from "../support/fakes/fakeHeads.ts";
import { createChainNode } from "../support/servers/chainNode.ts";

/** The outcomes that a policy may retry; `null` is a response. */
const OUTCOMES = [
  "missingBlock",
  "prunedData",
  "otherBranch",
  "unreachable",
  "rateLimited",
  "timeout",
  "tagUnsupported",
  "null",
] as const;
type Outcome = (typeof OUTCOMES)[number];

const MESSAGES: Partial<Record<Outcome, string>> = {
  missingBlock: "header not found",
  prunedData: "missing trie node",
};
const NULL = Buffer.from("null");

const fail = (outcome: Exclude<Outcome, "null">): NodeError => {
  const kind: NodeErrorKind = outcome === "missingBlock" || outcome === "prunedData" ? "missingData" : outcome;
  const text = Buffer.from("{}");
  return new NodeError(kind, "node", MESSAGES[outcome] ?? outcome, outcome === "rateLimited" ? { text } : {});
};

/** A clock that counts the time of all delays. None of them takes any. */
const createCountingClock = () => {
  const clock = {
    sleptMs: 0,
    nowMs: () => clock.sleptMs,
    sleep: async (forMs: number) => {
      clock.sleptMs += forMs;
    },
  };
  return clock satisfies Clock;
};

interface Script {
  /** The outcomes of all requests in turn, from the start again at the end. */
  readonly outcomes: readonly Outcome[];
  /** Whether each refresh finds a new head. */
  readonly moves: readonly boolean[];
  readonly nodes: number;
  readonly attempts: number;
  readonly byHash: boolean;
}

const LATEST = 10n;

const start = ({ outcomes, moves, nodes, attempts, byHash }: Script) => {
  const clock = createCountingClock();
  const heads = createFakeHeads(LATEST);
  const { latest } = heads.current();
  let sent = 0;
  let refreshes = 0;
  const send = async (): Promise<Uint8Array> => {
    const outcome = outcomes[sent % outcomes.length] ?? "null";
    sent += 1;
    if (outcome === "null") {
      return NULL;
    }
    throw fail(outcome);
  };
  const chainNodes = Array.from({ length: nodes }, (_, index): UpstreamNode => {
    const node = createChainNode(`node${index}`, createFakeChain({ height: 1 }));
    node.health.recordHead(latest);
    const requests = new NodeRequests({ name: node.name, health: node.health, send }, undefined, clock);
    node.request = (request, context) => requests.request(request, context);
    return node;
  });
  const pool = new NodePool("chain", chainNodes, { attempts, clock }, silent());
  const chain = {
    heads: {
      ...heads,
      refresh: async () => {
        await clock.sleep(RETRY_LIMITS.view.maxRefreshMs);
        if (moves[refreshes++ % moves.length]) {
          heads.move({ number: heads.current().latest.number + 1n });
        }
        return heads.current();
      },
    },
  };
  const request: RpcRequest = createRequest({
    method: "eth_getBlockReceipts",
    params: ["0xa"],
    nullIsError: true,
    block: { number: latest.number, hash: latest.hash },
    ...(byHash && { byHash: createCall("byHash", [latest.hash]) }),
  });
  const context: Context = createContext({
    heads: heads.current(),
    deadlineMs: Number.POSITIVE_INFINITY,
  });
  return { clock, chain, request, context, pool, node: chainNodes[0] as NodeSource };
};

const ignore = () => undefined;

/** The total of all delays of each policy, each run alone with the script. */
const sleptMs = async (script: Script): Promise<{ node: number; pool: number; view: number }> => {
  const node = start(script);
  await node.node.request(node.request, node.context).catch(ignore);
  const pool = start(script);
  await pool.pool.request(pool.request, pool.context).catch(ignore);
  const view = start(script);
  const request = (context: Context) => view.pool.request(view.request, context);
  await Promise.try(() => retryOnBranchChange(view.chain, view.context, request, view.clock)).catch(ignore);
  return { node: node.clock.sleptMs, pool: pool.clock.sleptMs, view: view.clock.sleptMs };
};

const one = (outcome: Outcome): Script => ({
  outcomes: [outcome],
  moves: [false],
  nodes: 1,
  attempts: RETRY_LIMITS.pool.defaultAttempts,
  byHash: false,
});

const waits = longestWaitsMs(RETRY_LIMITS.pool.defaultAttempts);

const logChain = createLogChain(
  Array.from({ length: 8 }, () => [{ address: fakeAddress(1), topics: [], data: "0x12" as const }]),
);
/** `incomplete`: a range without its last logs, so that their blocks are fetched again. */
type LogsOutcome = Exclude<Outcome, "null"> | "complete" | "incomplete";

/** Longer than any wait for logs. */
const LOGS_LIMIT_MS = 10_000;

/** The time of all delays of one range of logs, with the outcomes of all requests in turn. Parallel delays overlap. */
const sleptForLogsMs = async (outcomes: readonly LogsOutcome[], nodes: number): Promise<number> => {
  const clock = createFakeClock();
  const startMs = clock.nowMs();
  let sent = 0;
  let outcome: LogsOutcome | undefined;
  const options = {
    chain: logChain,
    onLogs: () => {
      outcome = outcomes[sent++ % outcomes.length] ?? "complete";
      return outcome === "complete" || outcome === "incomplete" ? undefined : fail(outcome);
    },
    change: (logs: readonly unknown[]) => (outcome === "incomplete" ? logs.slice(0, 1) : logs),
  };
  const logNodes = Array.from({ length: nodes }, (_, index) => createFakeLogNode({ ...options, name: `node${index}` }));
  const context = createContext({ heads: fakeHeads(logChain, { finalized: 1 }) });
  const logs = createSplit(logNodes, { clock }).request(ANY, range(2, 7), context);
  const ended = logs.then(clock.nowMs, clock.nowMs);
  await clock.advance(LOGS_LIMIT_MS);
  return (await ended) - startMs;
};

test("the table has the default of the option", () => {
  const option = readOptions().find(({ path }) => path === "chains[].upstream.attempts");
  assert.equal(option?.fallback, `\`${RETRY_LIMITS.pool.defaultAttempts}\``);
});

test("a node without an announced block gets retries for the node's longest wait", async () => {
  for (const byHash of [false, true]) {
    assert.equal((await sleptMs({ ...one("missingBlock"), byHash })).node, waits.node);
  }
});

test("a pool waits longest if every attempt waits for a block, or backs off", async () => {
  assert.equal((await sleptMs({ ...one("missingBlock"), nodes: 3 })).pool, 3 * waits.node);
  assert.equal((await sleptMs(one("unreachable"))).pool, waits.pool - 3 * waits.node);
});

test("a read waits longest for a node that hangs if the probe does not connect", async () => {
  const clock = createFakeClock();
  const startMs = clock.nowMs();
  const { promise, resolve } = Promise.withResolvers<number>();
  const { connectMs, answerMs } = RETRY_LIMITS.hang;
  const send = async () => {
    await clock.sleep(connectMs + answerMs, new AbortController().signal);
    return false;
  };
  const watch = new HangWatch({ hasOther: () => true, onHang: () => undefined }, { send }, clock);
  watch.begin({ isAwaited: false, onHang: () => resolve(clock.nowMs() - startMs) });
  await clock.advance(waits.hang);
  assert.equal(await promise, waits.hang);
  watch.close();
});

test("a view waits for heads while the nodes are on another branch", async () => {
  const { delaysMs, maxRefreshMs } = RETRY_LIMITS.view;
  const delays = delaysMs.reduce((total, delayMs) => total + delayMs, 0);
  assert.equal((await sleptMs(one("otherBranch"))).view, (delaysMs.length + 1) * maxRefreshMs + delays);
});

test("a range of logs waits before each new round over the nodes", async () => {
  for (const nodes of [1, 3]) {
    assert.equal(await sleptForLogsMs(["unreachable"], nodes), waits.logs);
    const failing = Array.from({ length: 100 }, () => "unreachable" as const);
    assert.equal(await sleptForLogsMs(["incomplete", ...failing], nodes), waits.logs);
  }
  assert.equal(await sleptForLogsMs(["otherBranch"], 3), 0);
});

test("no sequence of outcomes waits longer for a range of logs than the table says", async () => {
  const outcomes = fc.array(
    fc.constantFrom<LogsOutcome>(...OUTCOMES.filter((outcome) => outcome !== "null"), "complete", "incomplete"),
    { minLength: 1, maxLength: 12 },
  );
  await fc.assert(
    fc.asyncProperty(outcomes, fc.integer({ min: 1, max: 4 }), async (each, nodes) => {
      const sleptMs = await sleptForLogsMs(each, nodes);
      assert.ok(sleptMs <= waits.logs, `${sleptMs} ms`);
    }),
  );
});

test("no sequence of outcomes waits longer than the table says", async () => {
  const script = fc.record({
    outcomes: fc.array(fc.constantFrom(...OUTCOMES), { minLength: 1, maxLength: 12 }),
    moves: fc.array(fc.boolean(), { minLength: 1, maxLength: 8 }),
    nodes: fc.integer({ min: 1, max: 4 }),
    attempts: fc.integer({ min: 1, max: 4 }),
    byHash: fc.boolean(),
  });
  await fc.assert(
    fc.asyncProperty(script, async (each) => {
      const slept = await sleptMs(each);
      const longest = longestWaitsMs(each.attempts, each.nodes);
      for (const policy of ["node", "pool", "view"] as const) {
        assert.ok(slept[policy] <= longest[policy], `${policy}: ${slept[policy]} ms`);
      }
    }),
  );
});
