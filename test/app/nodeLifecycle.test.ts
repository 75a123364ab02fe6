import assert from "node:assert/strict";
import { test } from "node:test";
import { Upstreams } from "../../src/app/upstreams.ts";
import { createContext } from "../support/builders/request.ts";
import { silent } from "../support/builders/silent.ts";
import { createFakeChain } from "../support/fakes/fakeChain.ts";
import { createFakeNode } from "../support/fakes/fakeNode.ts";
import { balanceRequest, bodyText, createTwoNodes, startUpstreams } from "./startUpstreams.ts";

test("a node of another chain is suspended at the start, with both ids named", async (t) => {
  const chain = createFakeChain({ chainId: 1 });
  const one = await createFakeNode({ chain });
  const ten = await createFakeNode({ chain: createFakeChain({ chainId: 10 }) });
  const wrong = Promise.withResolvers<Error>();
  const { upstreams, telemetry } = await startUpstreams(t, [one, ten], { chainId: 1, onWrongChain: wrong.resolve });
  assert.match(
    (await wrong.promise).message,
    /"test": is configured with chain id 1, but node "node2" has chain id 10/,
  );
  const suspended = () => upstreams.nodes.map(({ identity }) => !identity.isIdentified);
  assert.deepEqual(suspended(), [false, true]);
  assert.match(await telemetry.registry.metrics(), /upstream_wrong_chain\{chain="test",node="node2"\} 1/);
  for (let read = 0; read < 5; read += 1) {
    assert.equal((await upstreams.request(balanceRequest("0x5"), createContext())).node, "node1");
  }
});

test("the log names both chain ids, once", async (t) => {
  const bad = await createFakeNode({ chain: createFakeChain({ chainId: 5 }) });
  const lines: object[] = [];
  const telemetry = silent();
  telemetry.log.error = (line: object) => lines.push(line);
  const upstreams = new Upstreams({ chain: "test", chainId: 31_337, nodes: [{ url: bad.url }] }, telemetry);
  t.after(async () => {
    await upstreams.close();
    await bad.close();
  });
  // The second check is a second later.
  while (bad.count("eth_chainId") < 2) {
    await bad.asked("eth_chainId");
  }
  assert.equal(lines.length, 1);
  assert.partialDeepStrictEqual(lines[0], { node: "node1", chainId: "5", expectedChainId: "31337" });
});

test("without a configured chain id the first answer decides", async (t) => {
  const [slow, fast] = [await createFakeNode({ chain: createFakeChain({ chainId: 5 }) }), await createFakeNode()];
  slow.faults.delayMs = 100;
  const wrong = Promise.withResolvers<Error>();
  const { upstreams } = await startUpstreams(t, [slow, fast], { onWrongChain: wrong.resolve });
  assert.match((await wrong.promise).message, /node "node2" has chain id 31337, but node "node1" has chain id 5/);
  assert.equal(upstreams.genesis.chainId, 31_337n);
});

test("a node that is down at the start is used once it is up", async (t) => {
  const [first, second] = await createTwoNodes();
  first.faults.answer = 503;
  const { upstreams } = await startUpstreams(t, [first, second]);
  assert.deepEqual(
    upstreams.nodes.map(({ identity }) => identity.isIdentified),
    [false, true],
  );
  first.faults.answer = undefined;
  while (!upstreams.nodes[0]?.available) {
    await first.asked("eth_getBlockByNumber");
    await new Promise(setImmediate);
  }
});

test("a node that dies under load costs no read", async (t) => {
  const [first, second] = await createTwoNodes();
  const { upstreams } = await startUpstreams(t, [first, second]);
  let reads = 0;
  const client = async (): Promise<void> => {
    while (reads < 400) {
      reads += 1;
      assert.equal(bodyText(await upstreams.request(balanceRequest("0x5"), createContext())), '"0x5"');
      if (reads === 100) {
        await first.close();
      }
    }
  };
  await Promise.all(Array.from({ length: 8 }, client));
});

test("a node that comes up late and is of another chain is suspended", async (t) => {
  const [good, bad] = [await createFakeNode(), await createFakeNode({ chain: createFakeChain({ chainId: 5 }) })];
  bad.faults.answer = 503;
  const wrong = Promise.withResolvers<Error>();
  const { upstreams } = await startUpstreams(t, [good, bad], { onWrongChain: wrong.resolve });
  bad.faults.answer = undefined;
  assert.match((await wrong.promise).message, /chain id 31337, but node "node2" has chain id 5/);
  assert.equal(upstreams.nodes[1]?.available, false);
});
