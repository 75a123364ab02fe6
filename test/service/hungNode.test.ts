import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { metric, rpc } from "../support/clients/rpc.ts";
import { assertAnswered, assertCostsNone, readBalances, startTwoNodes } from "./hangingNodes.ts";

describe("a node that hangs", { concurrency: true }, () => {
  test("reads on a node that hangs are answered by another node, and the node is used again when it answers", async () => {
    await using rig = await startTwoNodes({ hedge: { maxShare: 0 } });
    const service = await rig.launch();
    assertAnswered(await readBalances(service.url));
    // The node that forebay prefers.
    const [name, node] =
      rig.one.count("eth_getBalance") > rig.two.count("eth_getBalance") ? ["one", rig.one] : ["two", rig.two];
    const isHung = async (): Promise<boolean> =>
      (await metric(service.opsUrl, "forebay_upstream_hung", `node="${name}"`)) === 1;
    node.faults.answer = "hang";
    const before = node.count("eth_getBalance");
    while (node.count("eth_getBalance") === before) {
      assertAnswered(await readBalances(service.url));
    }
    assert.equal(await isHung(), true);
    const during = node.count("eth_getBalance");
    assertAnswered(await readBalances(service.url));
    assert.equal(node.count("eth_getBalance"), during);
    node.faults.answer = undefined;
    while (await isHung()) {
      assertAnswered(await readBalances(service.url));
    }
  });

  test("a service with a node that hangs from its start answers from the other node", async () => {
    await using rig = await startTwoNodes();
    rig.one.faults.answer = "hang";
    const service = await rig.launch();
    assertAnswered(await readBalances(service.url));
  });

  // Without hedges, half of a read's deadline must pass before another node gets what one node does not answer: a slow test.
  for (const { hung, kind, methods, hedge } of [
    { hung: "answers all but one method", kind: "with hedges", methods: ["eth_getBalance"], hedge: {} },
    { hung: "hangs", kind: "with hedges", hedge: {} },
    { hung: "hangs", kind: "without hedges", hedge: { maxShare: 0 } },
  ]) {
    test(`a node that ${hung} costs none of 200 reads, from the start on, ${kind}`, async () => {
      await using rig = await startTwoNodes({ hedge });
      await assertCostsNone(rig, methods);
    });
  }

  test("a slow trace on a node that responds to other requests keeps its time", async () => {
    await using rig = await startTwoNodes({ hedge: { maxShare: 0 } });
    const { one, two } = rig;
    for (const node of [one, two]) {
      node.faults.methods = ["debug_traceCall"];
      node.faults.answer = "hang";
    }
    const service = await rig.launch();
    const traced = Promise.race([one.asked("debug_traceCall"), two.asked("debug_traceCall")]);
    const answer = rpc(service.url, "debug_traceCall", [{}, "0x10", {}]);
    await traced;
    const [slow, other] = one.count("debug_traceCall") > 0 ? [one, two] : [two, one];
    // Four polls of its head take longer than a node may be silent.
    for (let poll = 0; poll < 4; poll += 1) {
      await slow.asked("eth_getBlockByNumber");
    }
    slow.release();
    assert.deepEqual((await answer).body.result, { gas: 1 });
    assert.equal(other.count("debug_traceCall"), 0);
  });
});
