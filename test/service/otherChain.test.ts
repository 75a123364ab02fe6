import assert from "node:assert/strict";
import { describe, type TestContext, test } from "node:test";
import { metric, rpc } from "../support/clients/rpc.ts";
import { until } from "../support/clients/until.ts";
import { createFakeChain, type FakeChain } from "../support/fakes/fakeChain.ts";
import { createFakeNode, type FakeNode } from "../support/fakes/fakeNode.ts";
import { FakeError } from "../support/fakes/front.ts";
import { type LyingNode, startLyingNode } from "../support/fakes/lyingNode.ts";
import { createService, type Service, startService } from "../support/servers/service.ts";

const ADDRESS = `0x${"11".repeat(20)}`;
const HEIGHT = 60;

const startNode = async (t: TestContext, chain: FakeChain): Promise<FakeNode> => {
  const node = await createFakeNode({ chain });
  t.after(() => node.close());
  return node;
};

const wrongNodes = (service: Service): Promise<number> => metric(service.opsUrl, "forebay_upstream_wrong_chain");

/** Replaces the node at this address by another one. */
const restartAs = (address: LyingNode, node: FakeNode): void => {
  address.target = node.url;
  address.disconnect();
};

const chainIdOf = async (url: string) => {
  const { status, body } = await rpc(url, "eth_chainId");
  return body.result ?? status;
};

describe("a node of another chain", { concurrency: true }, () => {
  test("a chain whose nodes are all of another chain is not served until one node is right", async (t) => {
    const right = await startNode(t, createFakeChain({ chainId: 901 }));
    const wrong = await startNode(t, createFakeChain({ chainId: 5, seed: "other" }));
    const address = await startLyingNode(t, wrong.url);
    const service = await startService([
      { name: "wrong", chainId: 902, nodes: [{ url: address.url }] },
      { name: "right", chainId: 901, nodes: [{ url: right.url }] },
    ]);
    t.after(() => service.close());
    await until(async () => (await wrongNodes(service)) === 1, "the node is suspended");
    await until(async () => (await chainIdOf(`${service.url}/right`)) === "0x385", "the other chain is served");
    assert.equal(await chainIdOf(`${service.url}/wrong`), 503);
    assert.equal((await rpc(`${service.url}/wrong`, "eth_getBalance", [ADDRESS, "0x1"])).status, 503);
    assert.equal(await (await fetch(`${service.opsUrl}/healthz`)).text(), "ok\n");

    restartAs(address, await startNode(t, createFakeChain({ chainId: 902, seed: "right" })));
    await until(async () => (await chainIdOf(`${service.url}/wrong`)) === "0x386", "it is served");
    assert.equal(await wrongNodes(service), 0);
  });

  for (const others of [0, 1]) {
    const beside = others === 0 ? "the only node" : "one of two nodes";
    test(`${beside} restarted as a node of another chain is not used until it is back`, async (t) => {
      const chain = createFakeChain({ height: HEIGHT });
      const first = await startNode(t, chain);
      const foreign = await startNode(t, createFakeChain({ chainId: 5, height: HEIGHT, seed: "other" }));
      const address = await startLyingNode(t, first.url);
      const honest = await Promise.all(Array.from({ length: others }, () => startNode(t, chain)));
      const service = await createService({
        chainId: 31_337,
        nodes: [address, ...honest].map(({ url }) => ({ url })),
        pending: { mode: "node" },
        // The hashes of the fake chain are not computed.
        verify: "cheap",
      });
      t.after(() => service.close());

      restartAs(address, foreign);
      let asked = 0;
      const askUntil = async (isSo: () => Promise<boolean>, what: string): Promise<void> => {
        await until(async () => {
          const number = 1 + (asked++ % (HEIGHT - 20));
          const params = [ADDRESS, `0x${asked.toString(16)}`, `0x${number.toString(16)}`];
          const { body } = await rpc(service.url, "eth_getStorageAt", params);
          // The storage value of the fake node is the hash of the block.
          if (others > 0 || body.result !== undefined) {
            assert.equal(body.result, chain.blocks[number]?.hash);
          }
          assert.equal(await chainIdOf(service.url), "0x7a69");
          const head = (await rpc(service.url, "eth_getBlockByNumber", ["latest", false])).body.result;
          if (others > 0 || head !== undefined) {
            assert.deepEqual(head, chain.latest.json);
          }
          return isSo();
        }, what);
      };
      await askUntil(async () => (await wrongNodes(service)) === 1, "the node is suspended");
      const before = asked;
      await askUntil(async () => asked > before + 20, "more is asked for");
      restartAs(address, first);
      await askUntil(async () => (await wrongNodes(service)) === 0, "the node is asked again");
      chain.mine();
      await until(
        async () => Number((await rpc(service.url, "eth_blockNumber")).body.result) === HEIGHT + 1,
        "heads go on",
      );
    });
  }

  test("a response that arrives after its node is found to be of another chain is not served", async (t) => {
    const method = "eth_getStorageAt";
    let chainId = 31_337;
    const node = await createFakeNode({
      chain: createFakeChain({ height: HEIGHT }),
      handlers: { eth_chainId: () => `0x${chainId.toString(16)}`, eth_gasPrice: () => "0x1" },
    });
    t.after(() => node.close());
    const service = await createService({ nodes: [{ url: node.url }], pending: { mode: "node" }, verify: "cheap" });
    t.after(() => service.close());

    Object.assign(node.faults, { answer: "hang", methods: [method] });
    const asked = node.asked(method);
    const read = rpc(service.url, method, [ADDRESS, "0x0", "0x1"]);
    await asked;
    chainId = 5;
    // A lost connection: the next request checks the chain.
    Object.assign(node.faults, { answer: "reset", methods: ["eth_gasPrice"] });
    await rpc(service.url, "eth_gasPrice");
    node.faults.answer = undefined;
    await until(async () => {
      await rpc(service.url, "eth_gasPrice");
      return (await wrongNodes(service)) === 1;
    }, "the node is suspended");
    node.release();
    const { status, body } = await read;
    assert.deepEqual([status, body.result], [503, undefined]);
  });

  test("a node with another genesis block is suspended while another node has the known one", async (t) => {
    const chain = createFakeChain({ height: HEIGHT });
    const first = await startNode(t, chain);
    const second = await startNode(t, chain);
    const addresses = await Promise.all([first, second].map(({ url }) => startLyingNode(t, url)));
    const [one, other] = addresses;
    assert.ok(one && other);
    const service = await createService({
      nodes: addresses.map(({ url }) => ({ url })),
      pending: { mode: "node" },
      verify: "cheap",
    });
    t.after(() => service.close());

    const again = createFakeChain({ height: 20, seed: "again" });
    const restarted = await startNode(t, again);
    restartAs(one, restarted);
    const head = async () => (await rpc(service.url, "eth_getBlockByNumber", ["latest", false])).body.result;
    await until(async () => {
      assert.deepEqual(await head(), chain.latest.json);
      return (await wrongNodes(service)) === 1;
    }, "the restarted node is suspended");

    restartAs(other, restarted);
    await until(async () => Object(await head()).hash === again.latest.hash, "the restarted chain is followed");
    await until(async () => (await wrongNodes(service)) === 0, "both nodes are asked");
    const { body } = await rpc(service.url, "eth_getStorageAt", [ADDRESS, "0x0", "0x3"]);
    assert.equal(body.result, again.blocks[3]?.hash);
  });
});

test("without a configured chain id the first answer decides, and /readyz names both ids", async (t) => {
  const slow = await startNode(t, createFakeChain({ chainId: 5, seed: "other" }));
  const fast = await startNode(t, createFakeChain());
  slow.faults.delayMs = 100;
  const service = await createService({ nodes: [slow, fast].map(({ url }) => ({ url })) });
  t.after(() => service.close());
  assert.equal(await chainIdOf(service.url), "0x7a69");
  await until(async () => (await wrongNodes(service)) === 1, "the other node is suspended");
  assert.match(await (await fetch(`${service.opsUrl}/readyz`)).text(), /has chain id 31337, but .* has chain id 5/);
});

test("net_version is what the nodes return, also of a chain whose network id is not its chain id", async (t) => {
  const node = await createFakeNode({ handlers: { net_version: () => "1" } });
  t.after(() => node.close());
  const service = await createService({ nodes: [{ name: "node", url: node.url }] });
  t.after(() => service.close());
  for (let count = 0; count < 2; count++) {
    assert.equal((await rpc(service.url, "net_version", [])).body.result, "1");
  }
  assert.equal(node.count("net_version"), 1);
});

test("net_version of a node that lacks it is the node's error", async (t) => {
  const missing = (): never => {
    throw new FakeError(-32_601, "the method net_version does not exist");
  };
  const node = await createFakeNode({ handlers: { net_version: missing } });
  t.after(() => node.close());
  const service = await createService({ nodes: [{ name: "node", url: node.url }] });
  t.after(() => service.close());
  assert.equal((await rpc(service.url, "net_version", [])).body.error?.code, -32_601);
});
