import assert from "node:assert/strict";
import { test } from "node:test";
import { createFakeNode } from "../../../support/fakes/fakeNode.ts";
import { peerOf } from "./program.ts";
import { PROGRAMS } from "./programs.ts";
import { writeStandIn } from "./standInProgram.ts";

test("each peer starts with its configuration, and answers at its path", async (t) => {
  const binary = await writeStandIn(t);
  const node = await createFakeNode();
  t.after(() => node.close());
  const port = Number(new URL(node.url).port);
  for (const program of PROGRAMS) {
    const peer = peerOf(program, binary);
    assert.equal(peer.version, "v1.2.3", program.name);
    const before = node.count("eth_getBlockByNumber");
    const server = await peer.start([port, port]);
    assert.ok(node.count("eth_getBlockByNumber") > before, program.name);
    assert.deepEqual([server.path, server.pids.length], [program.path, 1]);
    await server.end();
  }
});

test("a peer that ends at once is named with its exit code", async () => {
  const [program] = PROGRAMS;
  assert.ok(program);
  await assert.rejects(peerOf(program, "false").start([1]), new RegExp(`${program.name} ended with 1`));
});
