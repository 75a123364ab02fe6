import assert from "node:assert/strict";
import { test } from "node:test";
import { NodeError } from "../../src/core/node.ts";
import { coalesced } from "../../src/nodes/coalesced.ts";
import { createContext, createRequest } from "../support/builders/request.ts";
import { createFakeChain } from "../support/fakes/fakeChain.ts";
import { createFakeNode } from "../support/fakes/fakeNode.ts";
import { balanceRequest, bodyText, createTwoNodes, startUpstreams } from "./startUpstreams.ts";

test("a call is sent to the node with its own params text, and its result is returned as bytes", async (t) => {
  const fake = await createFakeNode({ handlers: { echo: (params) => params } });
  const { upstreams } = await startUpstreams(t, [fake]);
  const paramsText = Buffer.from('[ 1.0,  "\\u00e9" ]');
  const answer = await upstreams.request(createRequest({ method: "echo", paramsText }), createContext());
  assert.equal(bodyText(answer), '[1,"é"]');
  assert.equal(answer.node, "node1");
  assert.ok(fake.requests.at(-1)?.body.includes(paramsText.toString()));
});

test("a node's error keeps its code, message, data and text", async (t) => {
  const fake = await createFakeNode();
  const { upstreams } = await startUpstreams(t, [fake]);
  fake.faults.error = { code: 3, message: "execution reverted: no", data: "0x08c379a0" };
  await assert.rejects(upstreams.request(balanceRequest("latest"), createContext()), (error) => {
    assert.ok(error instanceof NodeError);
    assert.deepEqual(
      [error.kind, error.code, error.message, error.data],
      ["revert", 3, "execution reverted: no", "0x08c379a0"],
    );
    assert.equal(Buffer.from(error.text ?? []).toString(), JSON.stringify(fake.faults.error));
    return true;
  });
  assert.equal(fake.count("eth_getBalance"), 1);
});

test("a read that fails on one node is answered by another", async (t) => {
  for (const answer of ["reset", 503, 429] as const) {
    const [first, second] = await createTwoNodes();
    const { upstreams } = await startUpstreams(t, [first, second]);
    first.faults.answer = answer;
    for (let read = 0; read < 10; read += 1) {
      assert.equal(bodyText(await upstreams.request(balanceRequest("0x5"), createContext())), '"0x5"');
    }
  }
});

test("a write is sent once, whatever happens", async (t) => {
  const [first, second] = await createTwoNodes();
  const { upstreams } = await startUpstreams(t, [first, second]);
  first.faults.answer = 503;
  second.faults.answer = 503;
  const write = createRequest({ method: "eth_sendRawTransaction", params: ["0x01"], write: true, retention: "never" });
  await assert.rejects(upstreams.request(write, createContext()), { kind: "unreachable" });
  assert.equal(first.count("eth_sendRawTransaction") + second.count("eth_sendRawTransaction"), 1);
});

test("a deterministic error is not asked again", async (t) => {
  const [first, second] = await createTwoNodes();
  const { upstreams } = await startUpstreams(t, [first, second]);
  first.faults.error = second.faults.error = { code: -32_602, message: "query exceeds max results 20000" };
  await assert.rejects(upstreams.request(createRequest({ method: "eth_getLogs", params: [{}] }), createContext()), {
    kind: "tooLarge",
  });
  assert.equal(first.count("eth_getLogs") + second.count("eth_getLogs"), 1);
});

test("the breaker opens for a failing node and closes again by itself", async (t) => {
  const [first, second] = await createTwoNodes();
  const { upstreams, telemetry } = await startUpstreams(t, [first, second], {
    breaker: { failures: 2, openMs: 1_000 },
  });
  const [node1] = upstreams.nodes;
  const isOpen = async () => (await telemetry.registry.metrics()).includes('breaker_open{chain="test",node="node1"} 1');
  first.faults.answer = "reset";
  while (!(await isOpen())) {
    assert.equal(bodyText(await upstreams.request(balanceRequest("0x5"), createContext())), '"0x5"');
    await upstreams.heads.refresh();
  }
  const asked = first.count("eth_getBalance");
  await upstreams.request(balanceRequest("0x5"), createContext());
  assert.equal(first.count("eth_getBalance"), asked);
  first.faults.answer = undefined;
  // The polls of its head are the probes.
  while (!node1?.available || (await isOpen())) {
    await first.asked("eth_getBlockByNumber");
    await new Promise(setImmediate);
  }
});

test("Retry-After of a 503 sends reads to another node until then", async (t) => {
  const [first, second] = await createTwoNodes();
  const { upstreams } = await startUpstreams(t, [first, second]);
  first.faults.answer = second.faults.answer = 503;
  first.faults.retryAfter = 30;
  first.faults.methods = second.faults.methods = ["eth_getBalance"];
  const read = () => upstreams.request(balanceRequest("0x5"), createContext());
  await assert.rejects(read());
  second.faults.answer = undefined;
  assert.equal((await read()).node, "node2");
  assert.equal(first.count("eth_getBalance"), 1);
  assert.deepEqual(
    upstreams.nodes.map(({ available }) => available),
    [false, true],
  );
});

test("Retry-After of a 429 is honoured: the node gets no request until then", async (t) => {
  const fake = await createFakeNode();
  const { upstreams } = await startUpstreams(t, [fake]);
  fake.faults.answer = 429;
  fake.faults.retryAfter = 60;
  fake.faults.methods = ["eth_getBalance"];
  await assert.rejects(upstreams.request(balanceRequest("0x5"), createContext()), { status: 429, kind: "rateLimited" });
  const asked = fake.count("eth_getBalance");
  await assert.rejects(
    upstreams.request(balanceRequest("0x5"), createContext()),
    (error) => error instanceof NodeError && error.status === 429 && (error.retryAfterSeconds ?? 0) > 55,
  );
  assert.equal(asked, 1);
  assert.equal(fake.count("eth_getBalance"), 1);
});

test("the client's disconnect or the deadline ends the request to the node", async (t) => {
  const fake = await createFakeNode();
  const { upstreams } = await startUpstreams(t, [fake]);
  fake.faults.answer = "hang";
  fake.faults.methods = ["eth_getBalance"];
  const clientId = new AbortController();
  const asked = fake.asked("eth_getBalance");
  const answer = upstreams.request(balanceRequest("0x5"), createContext({ signal: clientId.signal }));
  await asked;
  clientId.abort();
  await assert.rejects(answer);
  const deadlineMs = performance.now() + 20;
  await assert.rejects(upstreams.request(balanceRequest("0x5"), createContext({ deadlineMs })), {
    status: 504,
    kind: "timeout",
  });
});

test("a read whose deadline has passed is a timeout, and no node gets it", async (t) => {
  const nodes = await createTwoNodes();
  const { upstreams } = await startUpstreams(t, nodes);
  const context = createContext({ deadlineMs: performance.now() - 1 });
  await assert.rejects(upstreams.request(balanceRequest("0x5"), context), { status: 504, kind: "timeout" });
  assert.deepEqual(
    nodes.map((node) => node.count("eth_getBalance")),
    [0, 0],
  );
});

test("an empty answer of a node that has not got the block is no answer", async (t) => {
  const [first, second] = await createTwoNodes();
  first.faults.lag = 5;
  const { upstreams } = await startUpstreams(t, [first, second]);
  const rpcRequest = createRequest({
    method: "eth_getBlockByNumber",
    params: ["0xa", false],
    block: { number: 10n },
    nullIsError: true,
  });
  assert.notEqual(bodyText(await upstreams.request(rpcRequest, createContext())), "null");
  assert.equal((await upstreams.request(rpcRequest, createContext())).node, "node2");
  const ahead = createRequest({
    method: "eth_getLogs",
    params: [{ fromBlock: "0x64", toBlock: "0x64" }],
    block: { number: 100n },
  });
  const answer = await upstreams.request(ahead, createContext());
  assert.deepEqual([bodyText(answer), answer.verified], ["[]", false]);
  assert.equal(first.count("eth_getLogs") + second.count("eth_getLogs"), 2);
});

test("a missing block that the node announced is requested again from that node", async (t) => {
  let missing = 2;
  const chain = createFakeChain();
  const fake = await createFakeNode({
    chain,
    handlers: { eth_getBlockByHash: () => (missing-- > 0 ? null : chain.latest.json) },
  });
  const { upstreams } = await startUpstreams(t, [fake]);
  const { number, hash } = chain.latest;
  const rpcRequest = createRequest({
    method: "eth_getBlockByNumber",
    params: ["0xa", true],
    block: { number, hash },
    byHash: createRequest({ method: "eth_getBlockByHash", params: [hash, true] }),
    nullIsError: true,
    blockField: "hash",
  });
  const answer = await upstreams.request(rpcRequest, createContext());
  assert.deepEqual([answer.verified, answer.block], [true, { number, hash }]);
  assert.equal(fake.count("eth_getBlockByHash"), 3);
  missing = 100;
  const byNumber = await upstreams.request(rpcRequest, createContext());
  assert.ok(bodyText(byNumber).includes(hash), "by its number at last");
  assert.equal(byNumber.verified, true, "it holds the hash that was asked for");
});

test("state is requested by hash if the node supports that, which is probed once", async (t) => {
  for (const refusesBlockHash of [false, true]) {
    const fake = await createFakeNode();
    fake.faults.refusesBlockHash = refusesBlockHash;
    const { upstreams } = await startUpstreams(t, [fake]);
    const { hash, number } = fake.chain.latest;
    const address = `0x${"11".repeat(20)}`;
    const rpcRequest = createRequest({
      method: "eth_getStorageAt",
      params: [address, "0x0", "0xa"],
      block: { number, hash },
      byHash: createRequest({
        method: "eth_getStorageAt",
        params: [address, "0x0", { blockHash: hash, requireCanonical: false }],
      }),
    });
    for (let read = 0; read < 3; read += 1) {
      const answer = await upstreams.request(rpcRequest, createContext());
      assert.equal(bodyText(answer), `"${hash}"`);
      assert.equal(answer.verified, refusesBlockHash ? undefined : true);
    }
    assert.equal(fake.count("eth_getBalance"), 1);
    assert.equal(fake.count("eth_getStorageAt"), 3);
  }
});

test("missing data is requested from another node, and the prune horizon is remembered", async (t) => {
  const chain = createFakeChain({ height: 200 });
  const [first, second] = await createTwoNodes({ chain });
  const { upstreams } = await startUpstreams(t, [first, second]);
  first.faults.error = { code: -32_000, message: "missing trie node 00ab (path ) state 0xcd is not available" };
  first.faults.methods = ["eth_getBalance"];
  const rpcRequest = balanceRequest("0x5", { block: { number: 5n } });
  for (let read = 0; read < 5; read += 1) {
    assert.equal(bodyText(await upstreams.request(rpcRequest, createContext())), '"0x5"');
  }
  assert.ok(first.count("eth_getBalance") <= 1);
  assert.ok(upstreams.nodes[0]?.oldest === 0n || upstreams.nodes[0]?.oldest === 6n);
});

test("a filter's poll goes to the node that made it, and to no other", async (t) => {
  const [first, second] = await createTwoNodes({ handlers: { eth_getFilterChanges: () => [] } });
  const { upstreams } = await startUpstreams(t, [first, second]);
  const poll = (onlyNode: string) =>
    upstreams.request(
      createRequest({ method: "eth_getFilterChanges", params: ["0x1"], write: true, retention: "never", onlyNode }),
      createContext(),
    );
  for (const name of ["node1", "node2", "node1"]) {
    assert.equal((await poll(name)).node, name);
  }
  await assert.rejects(poll("node3"), { code: -32_000, message: "filter not found" });
});

test("a batch is one request, in order, and falls back to single calls", async (t) => {
  for (const refusesBatches of [false, true]) {
    const fake = await createFakeNode();
    const { upstreams } = await startUpstreams(t, [fake]);
    fake.faults.refusesBatches = refusesBatches;
    const before = fake.requests.length;
    const outcomes = await upstreams.nodes[0]?.batch(
      [balanceRequest("0x1"), createRequest({ method: "eth_nothing" }), balanceRequest("0x3")],
      createContext(),
    );
    const [one, error, three] = outcomes ?? [];
    assert.ok(one && !(one instanceof NodeError) && bodyText(one) === '"0x1"');
    assert.ok(error instanceof NodeError && error.kind === "unsupportedMethod");
    assert.ok(three && !(three instanceof NodeError) && bodyText(three) === '"0x3"');
    assert.equal(
      fake.requests.slice(before).filter(({ body }) => body.includes("eth_nothing") && body.startsWith("[")).length,
      1,
    );
  }
});

test("a response over the limit is a clear error, and what is no JSON-RPC too", async (t) => {
  const fake = await createFakeNode({ handlers: { big: () => "x".repeat(20_000) } });
  const { upstreams } = await startUpstreams(t, [fake], { maxResponseBytes: 10_000 });
  await assert.rejects(upstreams.request(createRequest({ method: "big" }), createContext()), {
    kind: "tooLarge",
    code: -32_003,
    message: "response exceeds the limit of 10000 bytes",
  });
  fake.faults.answer = 200;
  await assert.rejects(upstreams.request(balanceRequest("0x5"), createContext()), {
    kind: "invalidAnswer",
    status: 503,
  });
});

test("the request of a shared read ends when its last client disconnects", async (t) => {
  const fake = await createFakeNode();
  const { upstreams } = await startUpstreams(t, [fake]);
  const shared = coalesced(upstreams);
  fake.faults.answer = "hang";
  fake.faults.methods = ["eth_getBalance"];
  const callers = [new AbortController(), new AbortController()];
  const asked = fake.asked("eth_getBalance");
  const answers = callers.map(({ signal }) => shared.request(balanceRequest("0x5"), createContext({ signal })));
  await asked;
  const broken = fake.broken();
  for (const clientId of callers) {
    clientId.abort();
  }
  assert.deepEqual(
    (await Promise.allSettled(answers)).map(({ status }) => status),
    ["rejected", "rejected"],
  );
  await broken;
  assert.equal(fake.count("eth_getBalance"), 1);
});

test("a client that disconnects while it waits for the node's budget is not counted as an error", async (t) => {
  const fake = await createFakeNode({ handlers: { echo: (params) => params } });
  const { upstreams } = await startUpstreams(t, [fake], { nodes: [{ url: fake.url, requestsPerSecond: 10 }] });
  const clientId = new AbortController();
  const calls = Array.from({ length: 30 }, () =>
    upstreams.request(createRequest({ method: "echo" }), createContext({ signal: clientId.signal })),
  );
  clientId.abort();
  for (const outcome of await Promise.allSettled(calls)) {
    assert.ok(outcome.status === "rejected" && outcome.reason instanceof NodeError);
  }
});
