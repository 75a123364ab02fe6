import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { describe, type TestContext, test } from "node:test";
import { fileURLToPath } from "node:url";
import { metric, rpc } from "../support/clients/rpc.ts";
import { until } from "../support/clients/until.ts";
import { createFakeChain } from "../support/fakes/fakeChain.ts";
import { createFakeNode, type FakeNode } from "../support/fakes/fakeNode.ts";

const BIN = fileURLToPath(new URL("../../src/cli/bin.ts", import.meta.url));
const LOADERS = 4;
const SECRET = "s3cret";

interface Line {
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

/** Starts a process like a user, and waits until it is ready. */
const startBin = async (t: TestContext, file: string): Promise<Running> => {
  const child = spawn(process.execPath, [BIN, "--config", file], { stdio: ["ignore", "pipe", "inherit"] });
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
  const { listening: url = "", ops: opsUrl = "" } = await listening.promise;
  await until(async () => (await fetch(`${opsUrl}/readyz`)).status === 200, "ready");
  return { child, url, opsUrl, lines };
};

const configOf = (nodes: readonly FakeNode[], more = ""): string =>
  `server: { port: 0, opsPort: 0, drainDelayMs: 0 }
cache: { memoryBytes: 0 }
chains:
  - name: main
    nodes:
${nodes.map(({ url }, index) => `      - { name: node${"abc"[index]}, url: "${url}${SECRET}?key=${SECRET}", headers: { authorization: "Bearer ${SECRET}" } }`).join("\n")}
${more}`;

/** Reads until it is stopped. Every read must get a response. */
const startLoad = (url: string) => {
  const failures: unknown[] = [];
  let answered = 0;
  let stopped = false;
  const work = async (worker: number): Promise<void> => {
    for (let at = 0; !stopped; at++) {
      const address = `0x${(worker * 1_000_000 + at).toString(16).padStart(40, "0")}`;
      const { status, body } = await rpc(url, "eth_getBalance", [address, "0x1"]);
      if (status === 200 && body.result === "0x1") {
        answered++;
      } else {
        failures.push({ status, body });
      }
    }
  };
  const done = Promise.all(Array.from({ length: LOADERS }, (_, worker) => work(worker)));
  return {
    failures,
    answered: () => answered,
    stop: async () => {
      stopped = true;
      await done;
    },
  };
};

const reloads = (opsUrl: string, outcome: string) =>
  metric(opsUrl, "forebay_config_reloads_total", `outcome="${outcome}"`);

describe("a reload", { concurrency: true }, () => {
  test("no request fails while a reload removes a node, adds one and rejects an invalid file", async (t) => {
    const chain = createFakeChain();
    const nodes = await Promise.all(Array.from({ length: 3 }, () => createFakeNode({ chain })));
    const folder = mkdtempSync(join(tmpdir(), "forebay-reload-"));
    t.after(async () => {
      await Promise.all(nodes.map((node) => node.close()));
      rmSync(folder, { recursive: true });
    });
    const [a, b, c] = nodes;
    assert.ok(a && b && c);
    const file = join(folder, "forebay.yaml");
    writeFileSync(file, configOf([a, b]));
    const { child, url, opsUrl, lines } = await startBin(t, file);
    const load = startLoad(url);
    await until(() => load.answered() > 50, "it answers");

    writeFileSync(file, configOf([a]));
    child.kill("SIGHUP");
    await until(async () => (await reloads(opsUrl, "applied")) === 1, "the node is gone");
    await until(
      async () =>
        !(await (await fetch(`${opsUrl}/metrics`)).text()).includes('upstream_head{chain="main",node="nodeb"'),
      "its series too",
    );
    const asked = b.count();
    const before = load.answered();

    writeFileSync(file, configOf([a, b, c]));
    child.kill("SIGHUP");
    await until(async () => (await reloads(opsUrl, "applied")) === 2, "a node has come");
    assert.ok(load.answered() >= before && b.count() >= asked);
    await until(() => c.count("eth_getBlockByNumber") > 0, "it is asked");

    writeFileSync(file, configOf([a], "    colour: red\n"));
    child.kill("SIGHUP");
    await until(async () => (await reloads(opsUrl, "refused")) === 1, "it is refused");
    await until(() => lines.some(({ faults }) => faults !== undefined), "the fault is logged");
    const refused = lines.find(({ faults }) => faults !== undefined);
    assert.match(refused?.faults?.join() ?? "", /^chains\[0\]: .*colour/);

    const other = await createFakeNode({ chain: createFakeChain({ chainId: 77 }) });
    t.after(() => other.close());
    // Its name is new, so that no series of the old name may remain.
    writeFileSync(file, configOf([a, other]).replace("nodeb", "stranger"));
    child.kill("SIGHUP");
    await until(async () => (await reloads(opsUrl, "refused")) === 2, "a node of another chain is refused");
    const lastFault = () => lines.findLast(({ faults }) => faults !== undefined)?.faults?.join() ?? "";
    await until(() => /^chains\[0\]: .*77/.test(lastFault()), "the log names the chain id");

    assert.ok(
      !(await (await fetch(`${opsUrl}/metrics`)).text()).includes('upstream_breaker_open{chain="main",node="stranger"'),
    );
    const served = load.answered();
    await until(() => load.answered() > served + 50, "it still answers");
    await load.stop();
    assert.deepEqual(load.failures, []);
    assert.ok(!JSON.stringify(lines).includes(SECRET));
  });

  for (const more of ["", "    blockTimeMs: 200", "    blockTimeMs: 3000"]) {
    test(`a reload that adds a node that lags moves latest not back, ${more.trim() || "by default"}`, async (t) => {
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
      writeFileSync(file, configOf([ahead, late], more));
      child.kill("SIGHUP");
      await until(async () => {
        await ask();
        return (await reloads(opsUrl, "applied")) === 1;
      }, "the node is added");
      await ask();
      assert.deepEqual([...heads], ["0x14"]);
    });
  }

  test("a folder mounted as in Kubernetes is watched, ports stay, and /config shows no secret", async (t) => {
    const node = await createFakeNode();
    const folder = mkdtempSync(join(tmpdir(), "forebay-mounted-"));
    t.after(async () => {
      await node.close();
      rmSync(folder, { recursive: true });
    });
    /** Writes a new version as a new folder. One rename of the link `..data` activates all its files. */
    const publish = (version: string, text: string): void => {
      mkdirSync(join(folder, version));
      writeFileSync(join(folder, version, "forebay.yaml"), text);
      symlinkSync(version, join(folder, "..data_tmp"));
      renameSync(join(folder, "..data_tmp"), join(folder, "..data"));
    };
    publish("..1", configOf([node]));
    symlinkSync(join("..data", "forebay.yaml"), join(folder, "forebay.yaml"));
    assert.ok(readdirSync(folder).includes("..data"));
    const { url, opsUrl, lines } = await startBin(t, join(folder, "forebay.yaml"));
    assert.equal((await rpc(url, "eth_chainId")).status, 200);

    const key = "4".repeat(64);
    publish(
      "..2",
      `${configOf([node]).replace("port: 0", "port: 1")}access:\n  keys: [{ name: mine, sha256: "${key}" }]\n`,
    );
    await until(async () => (await reloads(opsUrl, "applied")) === 1, "the swap is seen");
    assert.equal((await rpc(url, "eth_chainId")).status, 401);
    await until(() => lines.some(({ options }) => options !== undefined), "the log line is read");
    assert.deepEqual(lines.find(({ options }) => options !== undefined)?.options, ["server.port"]);

    const text = await (await fetch(`${opsUrl}/config`)).text();
    const shown = JSON.parse(text);
    assert.equal(shown.chains[0].nodes[0].url, `${node.url}***`);
    assert.equal(shown.server.port, 0);
    assert.equal(shown.access.keys[0].name, "mine");
    assert.ok(!text.includes(SECRET) && !text.includes(key));
  });

  test("a new reload cancels one that waits for a dead node, and an invalid file does not", async (t) => {
    const chain = createFakeChain();
    const [a, dead, c] = await Promise.all(Array.from({ length: 3 }, () => createFakeNode({ chain })));
    assert.ok(a && dead && c);
    dead.faults.answer = "hang";
    const folder = mkdtempSync(join(tmpdir(), "forebay-cancelled-"));
    t.after(async () => {
      await Promise.all([a, dead, c].map((node) => node.close()));
      rmSync(folder, { recursive: true });
    });
    const file = join(folder, "forebay.yaml");
    writeFileSync(file, configOf([a]));
    const { child, url, opsUrl } = await startBin(t, file);

    writeFileSync(file, configOf([dead]));
    child.kill("SIGHUP");
    await until(() => dead.count() > 0, "the dead node is asked");
    writeFileSync(file, configOf([a], "    colour: red\n"));
    child.kill("SIGHUP");
    await until(async () => (await reloads(opsUrl, "refused")) === 1, "the invalid file is refused at once");
    assert.equal(await reloads(opsUrl, "replaced"), 0);
    writeFileSync(file, configOf([a, c]));
    child.kill("SIGHUP");
    await until(async () => (await reloads(opsUrl, "applied")) === 1, "the new file is applied");
    assert.equal(await reloads(opsUrl, "replaced"), 1);
    assert.equal(await reloads(opsUrl, "refused"), 1);
    assert.equal((await rpc(url, "eth_chainId")).status, 200);
    await until(() => c.count("eth_getBlockByNumber") > 0, "its node is asked");
  });
});
