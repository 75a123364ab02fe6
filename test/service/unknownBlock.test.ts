import assert from "node:assert/strict";
import { test } from "node:test";
import { startAnvil } from "../devnet/anvil.ts";
import { rpc } from "../support/clients/rpc.ts";
import { createFakeNode } from "../support/fakes/fakeNode.ts";
import { createService } from "../support/servers/service.ts";

const ADDRESS = `0x${"11".repeat(20)}`;
const NO_BLOCK = `0x${"22".repeat(32)}`;
const ABOVE = "0xffff";

test("an unknown block is null, and its state is -32000 header not found, whatever the node's message", async (t) => {
  const anvil = await startAnvil([]);
  const service = await createService({ nodes: [{ url: anvil.url }], pending: { mode: "node" } });
  t.after(async () => {
    await service.close();
    await anvil.close();
  });
  for (const block of [ABOVE, NO_BLOCK, { blockHash: NO_BLOCK }]) {
    for (const [method, params] of [
      ["eth_getBalance", [ADDRESS]],
      ["eth_getStorageAt", [ADDRESS, "0x0"]],
      ["eth_getTransactionCount", [ADDRESS]],
      ["eth_call", [{ to: ADDRESS }]],
    ] as const) {
      const { body } = await rpc(service.url, method, [...params, block]);
      assert.deepEqual(
        body.error,
        { code: -32_000, message: "header not found" },
        `${method} ${JSON.stringify(block)}`,
      );
    }
  }
  assert.equal((await rpc(service.url, "eth_getBlockByNumber", [ABOVE, false])).body.result, null);
  assert.equal((await rpc(service.url, "eth_getBlockByHash", [NO_BLOCK, false])).body.result, null);
});

test("`null` for the hash of a served block is asked again, and is then an error", async (t) => {
  let nulls = 0;
  const node = await createFakeNode({
    handlers: {
      eth_getBlockByHash: ([hash]) => {
        nulls--;
        return nulls >= 0 ? null : (node.chain.blocks.find((block) => block.hash === hash)?.json ?? null);
      },
    },
  });
  const service = await createService({ nodes: [{ url: node.url }], verify: "off" }, { cache: { memoryBytes: 0 } });
  t.after(async () => {
    await service.close();
    await node.close();
  });
  const newest = node.chain.blocks.at(-1);
  const read = async (hash: string | undefined = newest?.hash) =>
    (await rpc(service.url, "eth_getBlockByHash", [hash, false])).body;
  nulls = 1;
  assert.equal(Object(await read()).result?.hash, newest?.hash);
  nulls = Number.POSITIVE_INFINITY;
  assert.deepEqual((await read()).error, { code: -32_000, message: "header not found" });
  assert.equal((await read(NO_BLOCK)).result, null);
});

test("a block at `pending` that is read at latest is never null", async (t) => {
  const node = await createFakeNode({
    handlers: {
      // The pending block of this node is its newest one.
      eth_getBlockByNumber: ([tag, isFull]) => {
        const { blocks } = node.chain;
        const tags: Record<string, number> = {
          safe: 0,
          finalized: 0,
          latest: blocks.length - 1,
          pending: blocks.length - 1,
        };
        return isFull === true ? null : (blocks[tags[String(tag)] ?? Number(tag)]?.json ?? null);
      },
      eth_getBlockByHash: ([hash, isFull]) =>
        isFull === true ? null : (node.chain.blocks.find((block) => block.hash === hash)?.json ?? null),
    },
  });
  const service = await createService(
    { nodes: [{ url: node.url }], verify: "off", pending: { mode: "node" } },
    { cache: { memoryBytes: 0 } },
  );
  t.after(async () => {
    await service.close();
    await node.close();
  });
  for (const tag of ["latest", "pending"]) {
    const { body } = await rpc(service.url, "eth_getBlockByNumber", [tag, true]);
    assert.deepEqual(body.error, { code: -32_000, message: "header not found" }, tag);
  }
});
