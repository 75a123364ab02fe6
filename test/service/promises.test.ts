import assert from "node:assert/strict";
import { createHook } from "node:async_hooks";
import { createServer } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { type TestContext, test } from "node:test";
import { getHeapStatistics } from "node:v8";
import { median } from "../bench/support/compareServers.ts";
import { createService } from "../support/servers/service.ts";

const hashOf = (byte: string): string => `0x${byte.repeat(32)}`;
const BLOCK = {
  number: "0x1",
  hash: hashOf("11"),
  parentHash: hashOf("22"),
  timestamp: "0x6553f100",
  logsBloom: `0x${"00".repeat(256)}`,
  transactions: [],
};
/** The blocks are a whole chain: a gap would be read again and again, and its reads would count. */
const GENESIS = { ...BLOCK, number: "0x0", hash: hashOf("22"), parentHash: hashOf("00"), timestamp: "0x6553f000" };
const ROUNDS = 31;
const WARM_UP = 3_000;
const COUNTED = 1_000;
/** node:http sets two timers per request on a connection: its idle time while a request is open, and while none is. */
const TIMERS_OF_NODE_HTTP = 2;

/** undici sets one per request: how long the connection may stay idle afterwards. */
const TIMERS_OF_UNDICI = 1;

/** A node without promises, so that the counts are those of forebay. */
const startNode = (t: TestContext): Promise<string> => {
  interface Asked {
    readonly id: unknown;
    readonly method: string;
    readonly params: readonly unknown[];
  }
  const answerOne = ({ id, method, params }: Asked): unknown => {
    const block = params[0] === GENESIS.number || params[0] === GENESIS.hash ? GENESIS : BLOCK;
    const results: Readonly<Record<string, unknown>> = {
      eth_chainId: "0x1",
      eth_getBlockByNumber: block,
      eth_getBlockByHash: block,
      eth_call: "0x01",
    };
    return { jsonrpc: "2.0", id, result: results[method] ?? "0x1" };
  };
  const server = createServer((request, response) => {
    let body = "";
    request.setEncoding("utf8").on("data", (chunk) => {
      body += chunk;
    });
    request.on("end", () => {
      const asked = JSON.parse(body);
      const text = JSON.stringify(Array.isArray(asked) ? asked.map(answerOne) : answerOne(asked));
      response.writeHead(200, { "Content-Type": "application/json", "Content-Length": text.length }).end(text);
    });
  });
  server.keepAliveTimeout = 0;
  t.after(() => server.close());
  return new Promise((resolve) =>
    server.listen(0, "127.0.0.1", () => resolve(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)),
  );
};

interface Created {
  readonly promises: number;
  readonly timers: number;
  readonly abortControllers: number;
}

/** Calls `done` with what was created from the request to its response. */
const measureOne = (socket: Socket, body: string, done: (created: Created, text: string) => void): void => {
  const created = { promises: 0, timers: 0, abortControllers: 0 };
  const hook = createHook({
    init: (_, type) => {
      if (type === "PROMISE") {
        created.promises++;
      } else if (type === "Timeout") {
        created.timers++;
      }
    },
  });
  const { AbortController: Original } = globalThis;
  globalThis.AbortController = class extends Original {
    constructor() {
      super();
      created.abortControllers++;
    }
  };
  socket.once("data", (data) => {
    hook.disable();
    globalThis.AbortController = Original;
    done(created, data.toString());
  });
  hook.enable();
  socket.write(
    `POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
  );
};

/**
 * The medians over many requests, one at a time: background tasks create promises too. Of timers the least: a process that gets little of
 * the processor splits a batch into several turns, each with an HTTP request.
 */
const measure = async (url: string, bodyOf: (n: number) => string, status: RegExp): Promise<Created> => {
  const socket = connect(Number(new URL(url).port), "127.0.0.1");
  await new Promise((resolve) => socket.once("connect", resolve));
  const all: Created[] = [];
  for (let n = 0; n < ROUNDS; n++) {
    await new Promise<void>((resolve) => {
      setImmediate(() =>
        measureOne(socket, bodyOf(n), (created, text) => {
          all.push(created);
          if (n > 0) {
            assert.match(text, status);
          }
          resolve();
        }),
      );
    });
  }
  socket.destroy();
  const of = (name: keyof Created): readonly number[] => all.map((created) => created[name]);
  return {
    promises: median(of("promises")),
    timers: Math.min(...of("timers")),
    abortControllers: median(of("abortControllers")),
  };
};

/** The bytes that V8 allocates for one request, of many. A garbage collection does not change the counter. */
const allocatedBytes = async (url: string, bodyOf: (n: number) => string): Promise<number> => {
  const socket = connect(Number(new URL(url).port), "127.0.0.1");
  await new Promise((resolve) => socket.once("connect", resolve));
  const send = (n: number): Promise<unknown> => {
    const response = new Promise((resolve) => socket.once("data", resolve));
    const body = bodyOf(n);
    const head = `POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: ${body.length}`;
    socket.write(`${head}\r\n\r\n${body}`);
    return response;
  };
  // V8 compiles the functions of a request again and again in the first thousands.
  for (let n = 0; n < WARM_UP; n++) {
    await send(n);
  }
  const before = getHeapStatistics().total_allocated_bytes;
  for (let n = WARM_UP; n < WARM_UP + COUNTED; n++) {
    await send(n);
  }
  const after = getHeapStatistics().total_allocated_bytes;
  socket.destroy();
  return Math.round((after - before) / COUNTED);
};

const request = (method: string, params: readonly unknown[]): string =>
  JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });

const start = async (t: TestContext) => {
  const node = await startNode(t);
  const service = await createService({ nodes: [{ url: node }], pending: { mode: "node" }, blockTimeMs: 60_000 });
  t.after(() => service.close());
  return service;
};

test("a cache hit creates at most three promises, and no timer or AbortController of its own", async (t) => {
  const { url } = await start(t);
  const one = request("eth_getBlockByNumber", [BLOCK.number, false]);
  const hit = /cache-status: forebay; hit/i;
  const single = await measure(url, () => one, hit);
  assert.ok(single.promises <= 3, `${single.promises} promises`);
  assert.ok(single.timers <= TIMERS_OF_NODE_HTTP, `${single.timers} timers`);
  assert.equal(single.abortControllers, 0);
  const batch = await measure(url, () => `[${Array(20).fill(one).join()}]`, hit);
  assert.ok(batch.promises <= 3, `${batch.promises} promises of a batch`);
  t.diagnostic(JSON.stringify({ single, batch }));
});

test("a miss creates few promises, timers and AbortControllers, also of the coalesced read", async (t) => {
  const { url } = await start(t);
  const call = (n: number) =>
    request("eth_call", [{ to: `0x${n.toString(16).padStart(40, "0")}`, data: "0x01" }, "latest"]);
  const read = await measure(url, call, /cache-status: forebay; fwd=miss/i);
  const forwarded = await measure(url, () => request("net_peerCount", []), /cache-status: forebay; fwd=method/i);
  t.diagnostic(JSON.stringify({ read, forwarded }));
  assert.ok(read.promises <= 13, `${read.promises} promises of a read`);
  assert.ok(forwarded.promises <= 11, `${forwarded.promises} promises of a method that is never cached`);
  const timers = TIMERS_OF_NODE_HTTP + TIMERS_OF_UNDICI + 1;
  assert.ok(read.timers <= timers && read.abortControllers === 0, JSON.stringify(read));
  assert.ok(forwarded.timers <= timers && forwarded.abortControllers === 0, JSON.stringify(forwarded));
  const batch = await measure(
    url,
    (n) => `[${Array.from({ length: 20 }, (_, index) => call(1_000 + 20 * n + index)).join()}]`,
    /cache-status: forebay; fwd=miss/i,
  );
  t.diagnostic(JSON.stringify({ batch }));
  assert.ok(batch.promises <= 250, `${batch.promises} promises of a batch of 20`);
  assert.ok(batch.timers <= timers + 20 && batch.abortControllers === 0, JSON.stringify(batch));
});

test("a hit and a miss allocate little memory", async (t) => {
  const { url } = await start(t);
  const hit = await allocatedBytes(url, () => request("eth_getBlockByNumber", [BLOCK.number, false]));
  const miss = await allocatedBytes(url, (n) =>
    request("eth_call", [{ to: `0x${n.toString(16).padStart(40, "1")}`, data: "0x01" }, "latest"]),
  );
  t.diagnostic(JSON.stringify({ hit, miss }));
  // The client's side is included, and the node's side of a miss.
  assert.ok(hit <= 23_000, `${hit} bytes of a hit`);
  assert.ok(miss <= 55_000, `${miss} bytes of a miss`);
});
