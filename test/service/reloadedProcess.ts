import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { TestContext } from "node:test";
import { fileURLToPath } from "node:url";
import { metric, rpc } from "../support/clients/rpc.ts";
import { until } from "../support/clients/until.ts";
import { createFakeChain } from "../support/fakes/fakeChain.ts";
import { createFakeNode, type FakeNode } from "../support/fakes/fakeNode.ts";

const BIN = fileURLToPath(new URL("../../src/cli/bin.ts", import.meta.url));
export const SECRET = "s3cret";

interface Line {
  readonly level?: string;
  readonly msg: string;
  readonly listening?: string;
  readonly ops?: string;
  readonly faults?: readonly string[];
  readonly options?: readonly string[];
}

interface Running {
  readonly child: ChildProcess;
  readonly url: string;
  readonly opsUrl: string;
  readonly lines: readonly Line[];
}

/** Starts a process like a user, and waits until it is ready. `bin` is the command, by default that of this tree. */
export const startBin = async (t: TestContext, file: string, bin = BIN): Promise<Running> => {
  const child = spawn(process.execPath, [bin, "--config", file], { stdio: ["ignore", "pipe", "inherit"] });
  t.after(async () => {
    if (child.exitCode !== null) {
      return;
    }
    child.kill("SIGKILL");
    await once(child, "exit");
  });
  const lines: Line[] = [];
  const listening = Promise.withResolvers<Line>();
  createInterface({ input: child.stdout }).on("line", (text) => {
    const line: Line = JSON.parse(text);
    lines.push(line);
    if (line.listening !== undefined) {
      listening.resolve(line);
    }
  });
  // A process that refuses its configuration ends.
  child.once("exit", (code) => listening.reject(new Error(`the process ended with ${code}`)));
  const { listening: url = "", ops: opsUrl = "" } = await listening.promise;
  await until(async () => (await fetch(`${opsUrl}/readyz`)).status === 200, "ready");
  return { child, url, opsUrl, lines };
};

export const configOf = (nodes: readonly FakeNode[], more = ""): string =>
  `server: { port: 0, opsPort: 0, drainDelayMs: 0 }
cache: { memoryBytes: 0 }
chains:
  - name: main
    nodes:
${nodes.map(({ url }, index) => `      - { name: node${"abc"[index]}, url: "${url}${SECRET}?key=${SECRET}", headers: { authorization: "Bearer ${SECRET}" } }`).join("\n")}
${more}`;

/** Replaces a file as a whole, as Kubernetes and editors do. Whoever reads it sees one of the two. */
export const replaceFile = (file: string, content: string): void => {
  writeFileSync(`${file}.new`, content);
  renameSync(`${file}.new`, file);
};

export const reloads = (opsUrl: string, outcome: string) =>
  metric(opsUrl, "forebay_config_reloads_total", `outcome="${outcome}"`);

/** Adds a node that lags to a chain with the options `more`. Asserts that the served head never moves back. */
export const addNodeThatLags = async (t: TestContext, more: string): Promise<void> => {
  const chain = createFakeChain({ height: 20 });
  const [ahead, late] = [await createFakeNode({ chain }), await createFakeNode({ chain })];
  late.faults.lag = 5;
  const folder = mkdtempSync(join(tmpdir(), "forebay-reload-"));
  t.after(async () => {
    await Promise.all([ahead.close(), late.close()]);
    rmSync(folder, { recursive: true });
  });
  const file = join(folder, "forebay.yaml");
  writeFileSync(file, configOf([ahead], more));
  const { child, url, opsUrl } = await startBin(t, file);
  const heads = new Set<unknown>();
  const ask = async () => heads.add((await rpc(url, "eth_blockNumber")).body.result);
  await ask();
  replaceFile(file, configOf([ahead, late], more));
  child.kill("SIGHUP");
  await until(async () => {
    await ask();
    return (await reloads(opsUrl, "applied")) >= 1;
  }, "the node is added");
  await ask();
  assert.deepEqual([...heads], ["0x14"]);
};
