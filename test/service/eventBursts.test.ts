import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import type { WebSocket } from "ws";
import { metric } from "../support/clients/rpc.ts";
import { until } from "../support/clients/until.ts";
import { createFakeNode } from "../support/fakes/fakeNode.ts";
import { forwardTo, startFront } from "../support/fakes/front.ts";
import { createService } from "../support/servers/service.ts";
import { untilFilled } from "../support/servers/untilFilled.ts";
import { ATTACKER, MIB, OTHER, openWebSocket } from "./budgetedService.ts";

const LOGS = 800;
/** More bytes on each connection than its TCP buffers hold. */
const SOCKETS = 4;
const SUBSCRIPTIONS = 25;
const BUDGET_BYTES = 16 * MIB;
const NO_BLOOM = `0x${"00".repeat(256)}`;
const FULL_BLOOM = `0x${"ff".repeat(256)}`;

const logsOf = (blockHash: unknown, blockNumber: string) =>
  Array.from({ length: LOGS }, (_, index) => ({
    address: `0x${"aa".repeat(20)}`,
    topics: [`0x${"11".repeat(32)}`],
    data: `0x${"22".repeat(96)}`,
    ...{ blockHash, blockNumber, transactionHash: blockHash, transactionIndex: "0x0" },
    logIndex: `0x${index.toString(16)}`,
    removed: false,
  }));

const subscribe = async (socket: WebSocket, count: number): Promise<void> => {
  for (let id = 0; id < count; id++) {
    socket.send(JSON.stringify({ jsonrpc: "2.0", id, method: "eth_subscribe", params: ["logs"] }));
    await once(socket, "message");
  }
};

test("readers that read nothing of a block of many logs are closed within the budget, and others get all", async (t) => {
  const node = await createFakeNode({
    handlers: {
      eth_getLogs: ([filter]) => {
        const { blockHash }: { blockHash?: unknown } = Object(filter);
        return logsOf(blockHash, `0x${node.chain.byHash(blockHash)?.number.toString(16)}`);
      },
    },
  });
  // The blooms show that each block may have logs.
  const front = await startFront(async (body) => {
    const { text } = await forwardTo(node.url, body);
    return text.replaceAll(NO_BLOOM, FULL_BLOOM);
  });
  const service = await createService(
    { nodes: [{ url: front.url }], verify: "off", forks: "prague" },
    { server: { memoryBudgetBytes: BUDGET_BYTES }, access: { trustedProxies: ["127.0.0.1"] } },
  );
  t.after(async () => {
    await service.close();
    await front.close();
    await node.close();
  });
  await untilFilled(service);
  const reader = await openWebSocket(t, service.url, OTHER);
  await subscribe(reader, 1);
  const indexes: number[] = [];
  reader.on("message", (data) => indexes.push(Number(JSON.parse(String(data)).params.result.logIndex)));
  const attackers = await Promise.all(Array.from({ length: SOCKETS }, () => openWebSocket(t, service.url, ATTACKER)));
  for (const attacker of attackers) {
    attacker.on("error", () => undefined);
    await subscribe(attacker, SUBSCRIPTIONS);
    attacker.pause();
  }
  let mostBytes = 0;
  node.chain.mine();
  await until(async () => {
    mostBytes = Math.max(
      mostBytes,
      await metric(service.opsUrl, "forebay_memory_budget_used_bytes", 'kind="responses"'),
    );
    return (await metric(service.opsUrl, "forebay_websockets")) === 1;
  }, "the budget closes the attackers");
  assert.ok(mostBytes <= BUDGET_BYTES, `${mostBytes} bytes`);
  await until(() => indexes.length === LOGS, "the reader has all logs");
  assert.deepEqual(
    indexes,
    Array.from({ length: LOGS }, (_, index) => index),
  );
});
