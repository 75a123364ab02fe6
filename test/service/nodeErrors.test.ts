import assert from "node:assert/strict";
import { once } from "node:events";
import { after, before, test } from "node:test";
import { WebSocket } from "ws";
import { metric, rpc } from "../support/clients/rpc.ts";
import { until } from "../support/clients/until.ts";
import { createFakeChain } from "../support/fakes/fakeChain.ts";
import { createFakeNode, type FakeNode } from "../support/fakes/fakeNode.ts";
import { FakeError } from "../support/fakes/front.ts";
import { createService, type Service } from "../support/servers/service.ts";

interface Fault {
  readonly code: number;
  readonly message: string;
  readonly data?: unknown;
}

/** Errors that nodes return for their own faults. The second part is from public threads about providers. */
const NODE_FAULTS: readonly Fault[] = [
  { code: -32_001, message: "Exceeded the quota usage" },
  { code: -32_000, message: "daily request limit reached" },
  { code: -32_007, message: "50/second request limit reached - reduce calls per second or upgrade your account" },
  { code: -32_000, message: "You have reached the limit for your current plan" },
  { code: -32_000, message: "the node is under too much load" },
  { code: -32_603, message: "No server available" },
  { code: -32_000, message: "limit exceeded" },
  { code: -32_011, message: "no backend is currently healthy to serve traffic" },
  { code: -32_000, message: "Unauthenticated" },
  { code: -32_600, message: "Your app has exceeded its compute units per second capacity" },
  { code: -32_000, message: "capacity exceeded" },
  { code: -32_600, message: "project ID does not have access to this network" },
  { code: -32_000, message: "please upgrade your plan" },
  { code: -32_603, message: "internal error" },
  { code: -32_005, message: "unclear" },
  { code: -32_016, message: "unclear" },

  { code: -32_005, message: "daily request count exceeded, request rate limited" },
  { code: 30, message: "Request timeout on the free tier, please upgrade your tier to the paid one" },
  { code: 19, message: "Temporary internal error. Please retry, trace-id: 00" },
  { code: -32_000, message: "Too many requests, reason: call rate limit exhausted, retry in 10s" },
  { code: -32_051, message: "API key disabled, reason: Api key budget exhausted" },
  { code: -32_000, message: "Unauthorized: You must authenticate your request with an API key" },
  { code: -32_000, message: "failed to serve request" },
  { code: -32_603, message: "service temporarily unavailable" },
  { code: -32_000, message: "cannot fulfill request" },
  { code: -32_099, message: "something that nobody has ever seen" },
];

/** Bodies with the status 200 that are not JSON-RPC. */
const PAGES: readonly string[] = [
  "<html>Too many requests</html>",
  "<html>no</html>",
  "daily request limit reached",
  "no",
];

/** Errors that every node would return. */
const CLIENT_FAULTS: readonly Fault[] = [
  { code: 3, message: "execution reverted: quota", data: "0x" },
  { code: -32_000, message: "execution reverted" },
  { code: -32_015, message: "VM execution error." },
  { code: -32_000, message: "out of gas" },
  { code: -32_000, message: "gas required exceeds allowance (50000000)" },
  { code: -32_000, message: "invalid opcode: INVALID" },
  { code: -32_000, message: "max fee per gas less than block base fee: address 0x, maxFeePerGas: 1, baseFee: 7" },
  { code: -32_602, message: "invalid argument 0: hex string has length 3, want 40 for common.Address" },
  { code: -32_602, message: "too many requests" },
  { code: -32_000, message: "nonce too low: next nonce 5, tx nonce 4" },
  { code: -32_000, message: "insufficient funds for gas * price + value: address 0x have 0 want 1" },
];

/** A chain of the service for each way in which a client sends its reads, so that each meets a node without a history. */
const WAYS = ["http", "http-batch", "http-items", "ws", "ws-batch", "ws-items"] as const;

const READS = 4;

const chain = createFakeChain({ height: 100 });
let fault: Fault | undefined;
/** Only the reads of odd addresses fail. */
let isPartial = false;
let isEverywhere = false;
let bad: FakeNode;
let good: FakeNode;
let nextAddress = 1;

const failing =
  (isBad: boolean) =>
  ([address]: readonly unknown[]): string => {
    const isFaulty = (isBad || isEverywhere) && (!isPartial || Number(address) % 2 === 1);
    if (fault !== undefined && isFaulty) {
      throw new FakeError(fault.code, fault.message, fault.data);
    }
    return "0x1";
  };

before(async () => {
  [bad, good] = await Promise.all([
    createFakeNode({ chain, handlers: { eth_getBalance: failing(true) } }),
    createFakeNode({ chain, handlers: { eth_getBalance: failing(false) } }),
  ]);
});
after(() => Promise.all([bad.close(), good.close()]));

/** Starts a service on the two nodes, of which the bad one is asked first. */
const startService = async (names: readonly string[], nodes = [bad, good]): Promise<Service> => {
  const service = await createService(
    names.map((name) => ({
      name,
      verify: "cheap" as const,
      nodes: nodes.map((node) =>
        node === bad ? { name: "bad", url: node.url } : { name: "good", url: node.url, priority: 1 },
      ),
    })),
    { cache: { memoryBytes: 0 } },
  );
  // A node without a head gets no reads.
  const haveHeads = () =>
    service.chains.every(({ upstreams }) => upstreams.nodes.every(({ head }) => head === chain.latest.number));
  await until(haveHeads, "the heads of all nodes are known");
  return service;
};

interface Answer {
  readonly id: number;
  readonly result?: unknown;
  readonly error?: Fault;
}

const createReads = (count: number) =>
  Array.from({ length: count }, (_, id) => ({
    jsonrpc: "2.0",
    id,
    method: "eth_getBalance",
    params: [`0x${(nextAddress++).toString(16).padStart(40, "0")}`, "0x10"],
  }));

const send = async (url: string, way: (typeof WAYS)[number]): Promise<readonly Answer[]> => {
  const reads = createReads(way === "http" || way === "ws" ? 1 : READS);
  const text = JSON.stringify(reads.length === 1 ? reads[0] : reads);
  if (way.startsWith("http")) {
    const response = await fetch(url, { method: "POST", headers: { "content-type": "application/json" }, body: text });
    const body: Answer | Answer[] = JSON.parse(await response.text());
    return [body].flat();
  }
  const socket = new WebSocket(url.replace("http", "ws"));
  await once(socket, "open");
  socket.send(text);
  const [message] = await once(socket, "message");
  socket.terminate();
  const body: Answer | Answer[] = JSON.parse(String(message));
  return [body].flat();
};

const urlOf = ({ url }: Service, name: string): string => `${url.replace(/\/$/, "")}/${name}`;

/** Two ways of the six for each fault: its class does not depend on the way, and each way meets many faults. */
const waysOf = (index: number): readonly (typeof WAYS)[number][] => {
  const way = index % 3;
  return WAYS.filter((_, at) => at === way || at === way + 3);
};

/** Reads in each way beside a good node. Every read must have its result, and the bad node must have been asked. */
const readInWays = async (ways: readonly (typeof WAYS)[number][]): Promise<void> => {
  const service = await startService(ways);
  try {
    for (const way of ways) {
      isPartial = way.endsWith("items");
      const before = bad.count("eth_getBalance");
      const answers = await send(urlOf(service, way), way);
      assert.ok(bad.count("eth_getBalance") > before, `${way}: the bad node was not asked`);
      assert.deepEqual(
        new Set(answers.map(({ result }) => result)),
        new Set(["0x1"]),
        `${way} ${JSON.stringify(answers)}`,
      );
    }
  } finally {
    fault = undefined;
    isPartial = false;
    bad.faults.answer = undefined;
    bad.faults.methods = undefined;
    await service.close();
  }
};

for (const [index, each] of NODE_FAULTS.entries()) {
  test(`another node answers after the error ${each.code} ${each.message}`, () => {
    fault = each;
    return readInWays(waysOf(index));
  });
}

for (const page of PAGES) {
  test(`another node answers after the page ${page} with the status 200`, () => {
    Object.assign(bad.faults, { answer: 200, page, methods: ["eth_getBalance"] });
    return readInWays(WAYS.filter((way) => !way.endsWith("items")));
  });
}

test("an error that the client caused is returned as it is, and no other node is asked", async () => {
  const service = await startService(["chain", "other"]);
  try {
    for (const each of CLIENT_FAULTS) {
      fault = each;
      const before = good.count("eth_getBalance");
      const [answer] = await send(urlOf(service, "chain"), "http");
      assert.deepEqual(answer?.error, each);
      assert.equal(good.count("eth_getBalance"), before, each.message);
    }
  } finally {
    fault = undefined;
    await service.close();
  }
});

test("an unknown error of every node is the client's, is counted, and keeps no node out", async () => {
  const service = await startService(["chain", "other"]);
  const url = urlOf(service, "chain");
  try {
    fault = { code: -32_099, message: "something that nobody has ever seen", data: { a: 1 } };
    isEverywhere = true;
    for (let read = 0; read < 5; read += 1) {
      const before = good.count("eth_getBalance") + bad.count("eth_getBalance");
      const [answer] = await send(url, "http");
      assert.deepEqual(answer?.error, fault);
      assert.equal(good.count("eth_getBalance") + bad.count("eth_getBalance"), before + 2);
    }
    assert.equal(await metric(service.opsUrl, "forebay_upstream_requests_total", 'outcome="other"'), 10);
    fault = undefined;
    const before = bad.count("eth_getBalance");
    const [answer] = await send(url, "http");
    assert.equal(answer?.result, "0x1");
    assert.equal(bad.count("eth_getBalance"), before + 1);
  } finally {
    fault = undefined;
    isEverywhere = false;
    await service.close();
  }
});

test("an unknown error of the only node is passed on, and counted", async () => {
  const service = await startService(["chain", "other"], [bad]);
  try {
    fault = { code: -32_099, message: "something that nobody has ever seen" };
    const { body } = await rpc(urlOf(service, "chain"), "eth_getBalance", [`0x${"1".repeat(40)}`, "0x10"]);
    assert.deepEqual(body.error, fault);
    assert.equal(await metric(service.opsUrl, "forebay_upstream_requests_total", 'outcome="other"'), 1);
  } finally {
    fault = undefined;
    await service.close();
  }
});

test("a node with an unknown error that another node does not have gets no more requests for the method", async () => {
  const service = await startService(["chain", "other"]);
  const url = urlOf(service, "chain");
  try {
    fault = { code: -32_099, message: "something that nobody has ever seen" };
    const before = bad.count("eth_getBalance");
    for (let read = 0; read < 20; read += 1) {
      const [answer] = await send(url, "http");
      assert.equal(answer?.result, "0x1");
    }
    assert.equal(bad.count("eth_getBalance"), before + 3);
  } finally {
    fault = undefined;
    await service.close();
  }
});

test("a write and a method outside the table are sent to one node, whatever its error", async () => {
  const service = await startService(["chain", "other"]);
  try {
    const methods = ["eth_sendRawTransaction", "custom_method"];
    for (const method of methods) {
      bad.faults.error = { code: -32_099, message: "something that nobody has ever seen" };
      bad.faults.methods = methods;
      const { body } = await rpc(urlOf(service, "chain"), method, ["0x00"]);
      assert.equal(body.error?.code, -32_099);
    }
    assert.equal(bad.count(...methods) + good.count(...methods), 2);
  } finally {
    bad.faults.error = undefined;
    bad.faults.methods = undefined;
    await service.close();
  }
});
