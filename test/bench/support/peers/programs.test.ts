import assert from "node:assert/strict";
import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { execPath } from "node:process";
import { test } from "node:test";
import { createFakeNode } from "../../../support/fakes/fakeNode.ts";
import { peerOf } from "./program.ts";
import { PROGRAMS } from "./programs.ts";

/** A program in place of a peer: it reads port and nodes from the configuration, and forwards to the first node. */
const STAND_IN = `#!${execPath}
const { readFileSync } = require("node:fs");
const { createServer } = require("node:http");
if (process.argv.includes("--version")) {
  console.log("stand-in version v1.2.3");
  process.exit(0);
}
const file = process.env.NODECORE_CONFIG_PATH ?? process.argv.at(-1);
const text = readFileSync(file, "utf8");
const [, port] = /(?:port|rpc_port|httpPort)(?::| =) (\\d+)/.exec(text);
const [, node] = /(?:endpoint|url|rpc_url)(?::| =) "(http[^"]+)"/.exec(text);
createServer(async (request, response) => {
  const chunks = await request.toArray();
  const answer = await fetch(node, { method: "POST", body: Buffer.concat(chunks), headers: { "content-type": "application/json" } });
  response.end(await answer.text());
}).listen(Number(port), "127.0.0.1");
`;

test("each peer starts with its configuration, and answers at its path", async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "forebay-stand-in-"));
  const binary = join(folder, "stand-in");
  await writeFile(binary, STAND_IN);
  await chmod(binary, 0o755);
  const node = await createFakeNode();
  t.after(async () => {
    await node.close();
    await rm(folder, { recursive: true });
  });
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
