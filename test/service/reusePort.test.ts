import assert from "node:assert/strict";
import { test } from "node:test";
import { freePort } from "../bench/support/nginx.ts";
import { metric } from "../support/clients/rpc.ts";
import { useSharedPort } from "../support/clients/sharedPort.ts";
import { until } from "../support/clients/until.ts";
import { createFakeNode } from "../support/fakes/fakeNode.ts";
import { type RunningCommand, startCommand } from "../support/servers/command.ts";
import { startRedis } from "../support/servers/redis.ts";

const CLIENTS = 16;
const REQUESTS = 20;
/** Of each process, before one ends. */
const ANSWERS = 200;

test("two processes share a port, and no request on an open connection fails when one ends", async (t) => {
  const [node, redis, port] = await Promise.all([createFakeNode(), startRedis(t), freePort()]);
  t.after(() => node.close());
  const start = () =>
    startCommand(t, {
      chains: [{ name: "chain", nodes: [{ url: node.url }] }],
      server: { port, reusePort: true },
      cache: { redis: redis.url },
    });
  const [ending, staying] = await Promise.all([start(), start()]);
  const answersOf = ({ opsUrl }: RunningCommand) => metric(opsUrl, "forebay_requests_total", 'outcome="ok"');
  let isOver = false;
  let answered = 0;
  const using = useSharedPort(port, {
    clients: CLIENTS,
    requests: REQUESTS,
    isOver: () => isOver,
    onAnswer: (use) => {
      answered = use.answered;
    },
  });
  await until(async () => {
    const counts = await Promise.all([ending, staying].map(answersOf));
    return counts.every((count) => count >= ANSWERS);
  }, "both processes answer");
  ending.signal("SIGTERM");
  assert.equal(await ending.ended, 0);
  const before = answered;
  await until(() => answered >= before + ANSWERS, "the other process answers alone");
  isOver = true;
  const { failures } = await using;
  assert.deepEqual(failures, []);
});
