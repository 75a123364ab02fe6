import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { WebSocketServer } from "ws";
import type { PendingBlock } from "../../../src/core/view.ts";
import type { Address, Hash } from "../../../src/ethereum/hex.ts";
import { createPendingBlock, hashOfName } from "../../support/builders/pendingBlock.ts";
import { createSubscriptionServer } from "../../support/servers/subscriptionServer.ts";

/** Sends flashblocks with logs to all clients, as fast as they read: `ours` by subscriptions, `bare` by a loop over ws. */
const [, , which, logs] = process.argv;

const LOGS = Number(logs);
const TOKEN: Address = `0x${"aa".repeat(20)}`;
const TRANSFER: Hash = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef";
const PERSON: Hash = `0x${"0".repeat(24)}${"cc".repeat(20)}`;

let events = 0;
const nextBlock = (): PendingBlock => {
  events++;
  const entries = [{ address: TOKEN, topics: [TRANSFER, PERSON, PERSON] }];
  return createPendingBlock(
    BigInt(10 + events),
    1,
    Array.from({ length: LOGS }, (_, at) => ({ name: `${events}-${at}`, logs: entries })),
  );
};

const serveOurs = async () => {
  const { server, port, pending, sent } = await createSubscriptionServer();
  const send = async (): Promise<void> => {
    const block = nextBlock();
    pending.emit({ extended: [{ block, fromTransaction: 0, toTransaction: LOGS, kind: "transactions" }] });
    await sent("pendingLogs");
  };
  return { server, port, send };
};

const serveBare = async () => {
  const server = createServer();
  const bare = new WebSocketServer({ noServer: true, perMessageDeflate: false });
  const id = hashOfName("id").slice(0, 34);
  server.on("upgrade", (request, socket, head) =>
    bare.handleUpgrade(request, socket, head, (client) => {
      client.once("message", () => client.send(`{"jsonrpc":"2.0","id":1,"result":"${id}"}`));
    }),
  );
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const send = async (): Promise<void> => {
    const block = nextBlock();
    for (const log of block.logs()) {
      const result = Buffer.from(block.formatLog(log)).toString();
      const params = `{"subscription":"${id}","result":${result}}`;
      const message = Buffer.from(`{"jsonrpc":"2.0","method":"eth_subscription","params":${params}}`);
      for (const client of bare.clients) {
        client.send(message, { binary: false });
      }
    }
  };
  return { server, port: (server.address() as AddressInfo).port, send };
};

const { server, port, send } = await (which === "ours" ? serveOurs() : serveBare());
const sockets = new Set<Socket>();
server.on("upgrade", (_, socket: Socket) => sockets.add(socket));

/** Sends one flashblock after the other. Each waits until all clients got the previous one. */
const sendFor = async (forMs: number): Promise<number> => {
  const endMs = performance.now() + forMs;
  let messages = 0;
  while (performance.now() < endMs) {
    await send();
    messages += LOGS * sockets.size;
    do {
      await sleep(1);
    } while ([...sockets].some(({ writableLength }) => writableLength > 0));
  }
  return messages;
};

process.on("message", async ({ warmMs, measureMs }: { warmMs: number; measureMs: number }) => {
  await sendFor(warmMs);
  const before = process.cpuUsage();
  const startMs = performance.now();
  const messages = await sendFor(measureMs);
  const { user, system } = process.cpuUsage(before);
  process.send?.({ messages, seconds: (performance.now() - startMs) / 1000, cpuSeconds: (user + system) / 1e6 });
});
process.on("disconnect", () => process.exit());
process.send?.(port);
