import { once } from "node:events";
import { connect, type Socket } from "node:net";
import type { TestContext } from "node:test";
import { WebSocket } from "ws";
import { metric } from "../support/clients/rpc.ts";
import { createFakeNode } from "../support/fakes/fakeNode.ts";
import { createService } from "../support/servers/service.ts";
import { untilFilled } from "../support/servers/untilFilled.ts";

export const MIB = 1024 * 1024;
export const BUDGET = 32 * MIB;
export const BODY_BYTES = 5_200_000;
export const LARGE_BYTES = 2_000_000;
/** Less than what counts alone. */
export const SMALL_BYTES = 60_000;
export const CALLED = `0x${"dd".repeat(20)}`;
/** The deadline is long, so that no run is late on a busy machine. */
export const SIMULATE = { timeoutMs: 60_000, maxResponseBytes: 4 * MIB };
export const OVER_BUDGET = "the server is over its memory budget";
export const ATTACKER = "203.0.113.1";
export const OTHER = "203.0.113.2";
export const start = async (
  t: TestContext,
  server: {
    readonly writeTimeoutMs?: number;
    readonly webSocketPingMs?: number;
    readonly memoryBudgetBytes?: number;
  } = {},
) => {
  const large = `0x${"ab".repeat(LARGE_BYTES / 2)}`;
  const small = `0x${"ab".repeat(SMALL_BYTES / 2)}`;
  const node = await createFakeNode({
    handlers: {
      eth_getCode: (params) => (params[0] === CALLED ? "0x" : large),
      eth_getTransactionCount: () => "0x0",
      custom_large: () => large,
      custom_small: () => small,
    },
  });
  const service = await createService(
    { nodes: [{ url: node.url }], verify: "off", forks: "prague", simulate: SIMULATE },
    { server: { memoryBudgetBytes: BUDGET, ...server }, access: { trustedProxies: ["127.0.0.1"] } },
  );
  t.after(async () => {
    await service.close();
    await node.close();
  });
  await untilFilled(service);
  const used = (kind: string) => metric(service.opsUrl, "forebay_memory_budget_used_bytes", `kind="${kind}"`);
  const refused = (kind: string) => metric(service.opsUrl, "forebay_memory_budget_refused_total", `kind="${kind}"`);
  const post = async (client: string, method: string, params: readonly unknown[] = []) => {
    const headers = { "content-type": "application/json", "x-forwarded-for": client };
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
    const response = await fetch(service.url, { method: "POST", headers, body });
    return { status: response.status, headers: response.headers, text: await response.text() };
  };
  const open = (client: string, text: string): Socket => {
    const socket = connect(Number(new URL(service.url).port), "127.0.0.1");
    socket.on("error", () => undefined);
    socket.write(text.replaceAll("CLIENT", client));
    t.after(() => socket.destroy());
    return socket;
  };
  return { node, service, used, refused, post, open };
};

export const headOf = (bytes: number): string =>
  `POST / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: CLIENT\r\nContent-Type: application/json\r\nContent-Length: ${bytes}\r\n\r\n`;

export const openWebSocket = async (t: TestContext, url: string, client: string) => {
  const socket = new WebSocket(url.replace("http", "ws"), {
    headers: { "x-forwarded-for": client },
    autoPong: false,
  });
  t.after(() => socket.terminate());
  await once(socket, "open");
  return socket;
};
