import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import { createProcess } from "../../src/app/main.ts";
import { ConfigError } from "../../src/config/readConfig.ts";
import { Reload } from "../../src/config/reload.ts";
import { type Config, configSchema } from "../../src/config/schema.ts";
import { silent } from "../support/builders/silent.ts";
import { rpc, scrape } from "../support/clients/rpc.ts";
import { until } from "../support/clients/until.ts";
import { createFakeChain } from "../support/fakes/fakeChain.ts";
import { createFakeNode, type FakeNode } from "../support/fakes/fakeNode.ts";
import { addNodeThatLags, configOf, reloads, replaceFile, SECRET, startBin } from "./reloadedProcess.ts";

const LOADERS = 4;

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

    // The watch of the file may see a change before the signal: the number of reloads is not certain, their effect is.
    replaceFile(file, configOf([a]));
    child.kill("SIGHUP");
    await until(
      async () => !(await scrape(opsUrl)).includes('upstream_head{chain="main",node="nodeb"'),
      "the node is gone, with its series",
    );
    const asked = b.count();
    const before = load.answered();

    replaceFile(file, configOf([a, b, c]));
    child.kill("SIGHUP");
    await until(() => c.count("eth_getBlockByNumber") > 0, "a node has come, and is asked");
    await until(async () => (await reloads(opsUrl, "applied")) >= 2, "the reload has ended");
    assert.ok(load.answered() >= before && b.count() >= asked);

    replaceFile(file, configOf([a], "    colour: red\n"));
    child.kill("SIGHUP");
    await until(() => lines.some(({ faults }) => faults !== undefined), "the fault is logged");
    assert.ok((await reloads(opsUrl, "refused")) >= 1);
    const refused = lines.find(({ faults }) => faults !== undefined);
    assert.match(refused?.faults?.join() ?? "", /^chains\[0\]: .*colour/);

    const other = await createFakeNode({ chain: createFakeChain({ chainId: 77 }) });
    t.after(() => other.close());
    // Its name is new, so that no series of the old name may remain.
    replaceFile(file, configOf([a, other]).replace("nodeb", "stranger"));
    child.kill("SIGHUP");
    const lastFault = () => lines.findLast(({ faults }) => faults !== undefined)?.faults?.join() ?? "";
    await until(() => /^chains\[0\]: .*77/.test(lastFault()), "a node of another chain is refused, with the chain id");

    assert.ok(!(await scrape(opsUrl)).includes('upstream_breaker_open{chain="main",node="stranger"'));
    const served = load.answered();
    await until(() => load.answered() > served + 50, "it still answers");
    await load.stop();
    assert.deepEqual(load.failures, []);
    assert.ok(!JSON.stringify(lines).includes(SECRET));
  });

  test("a reload that adds a node that lags moves latest not back, with blocks of 200 ms", (t) =>
    addNodeThatLags(t, "    blockTimeMs: 200"));

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

  test("a secret in a mounted folder is read again when it changes, and not shown if it is wrong", async (t) => {
    const node = await createFakeNode();
    const folder = mkdtempSync(join(tmpdir(), "forebay-secret-"));
    t.after(async () => {
      await node.close();
      rmSync(folder, { recursive: true });
    });
    const digest = join(folder, "digest");
    const publish = (content: string): void => replaceFile(digest, content);
    const digestOf = (key: string): string => createHash("sha256").update(key).digest("hex");
    const statusOf = async (key: string) => (await rpc(url, "eth_chainId", [], { "x-api-key": key })).status;
    publish(`${digestOf("old")}\n`);
    const file = join(folder, "forebay.yaml");
    writeFileSync(file, `${configOf([node])}access:\n  keys: [{ name: mine, sha256: "\${file:${digest}}" }]\n`);
    const { child, url, opsUrl, lines } = await startBin(t, file);
    assert.equal(await statusOf("old"), 200);

    publish(`${digestOf("new")}\n`);
    await until(async () => (await reloads(opsUrl, "applied")) === 1, "the change is seen");
    assert.deepEqual([await statusOf("old"), await statusOf("new")], [401, 200]);

    const path = "access.keys[0].sha256";
    const isLogged = (fault: string) => lines.some(({ faults = [] }) => faults.some((text) => text.startsWith(fault)));
    publish(`${SECRET}\n`);
    child.kill("SIGHUP");
    await until(() => isLogged(`${path}: `), "a wrong secret is refused");
    rmSync(digest);
    child.kill("SIGHUP");
    await until(() => isLogged(`${path}: cannot read the file ${digest} (ENOENT)`), "a missing secret is refused");
    assert.equal(await statusOf("new"), 200);
    assert.ok(!JSON.stringify(lines).includes(SECRET));
  });

  test("a new reload cancels one that waits for a dead node, and an invalid configuration does not", async (t) => {
    const chain = createFakeChain();
    const [a, dead, c] = await Promise.all(Array.from({ length: 3 }, () => createFakeNode({ chain })));
    assert.ok(a && dead && c);
    t.after(() => Promise.all([a, dead, c].map((node) => node.close())));
    dead.faults.answer = "hang";
    const configWith = (...nodes: readonly FakeNode[]) =>
      configSchema.parse({
        chains: [{ name: "main", nodes: nodes.map((node) => ({ url: node.url })) }],
        server: { port: 0, opsPort: 0, drainDelayMs: 0 },
      });
    const telemetry = silent();
    const forebay = await createProcess(configWith(a), telemetry);
    t.after(() => forebay.close());
    await forebay.ready;
    const { url, opsUrl } = forebay;
    // In this process, because a signal or the watch of a file may come late on a busy machine.
    let read = () => configWith(dead);
    const apply = (config: Config, signal: AbortSignal) => forebay.reload(config, signal);
    const reload = new Reload({ read: () => read(), apply, telemetry });
    const cancelled = reload.run();
    await until(() => dead.count() > 0, "the dead node is asked");

    read = () => {
      throw new ConfigError(["chains: none"]);
    };
    await reload.run();
    assert.deepEqual([await reloads(opsUrl, "refused"), await reloads(opsUrl, "replaced")], [1, 0]);
    read = () => configWith(a, c);
    await reload.run();
    await cancelled;
    assert.deepEqual([await reloads(opsUrl, "applied"), await reloads(opsUrl, "replaced")], [1, 1]);
    assert.equal((await rpc(url, "eth_chainId")).status, 200);
    await until(() => c.count("eth_getBlockByNumber") > 0, "its node is asked");
  });
});
