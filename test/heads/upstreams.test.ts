import assert from "node:assert/strict";
import { test } from "node:test";
import { createContext, createRequest } from "../support/builders/request.ts";
import { createFakeNode } from "../support/fakes/fakeNode.ts";
import { balanceRequest, bodyText, createTwoNodes, startUpstreams } from "./startUpstreams.ts";

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
