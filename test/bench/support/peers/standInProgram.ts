import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { execPath } from "node:process";
import type { Lifespan } from "../../../support/servers/redis.ts";

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

/** Writes the program to a file, and returns its path. It ends with the test. */
export const writeStandIn = async (t: Lifespan): Promise<string> => {
  const folder = await mkdtemp(join(tmpdir(), "forebay-stand-in-"));
  t.after(() => rm(folder, { recursive: true }));
  const binary = join(folder, "stand-in");
  await writeFile(binary, STAND_IN);
  await chmod(binary, 0o755);
  return binary;
};
