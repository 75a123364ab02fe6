import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import { rpc } from "../support/clients/rpc.ts";
import { until } from "../support/clients/until.ts";
import { createFakeChain } from "../support/fakes/fakeChain.ts";
import { createFakeNode } from "../support/fakes/fakeNode.ts";
import { addNodeThatLags, configOf, reloads, SECRET, startBin } from "./reloadedProcess.ts";

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
    /** Replaces the file as a whole, as Kubernetes and secret stores do. */
    const publish = (content: string): void => {
      writeFileSync(join(folder, "new"), content);
      renameSync(join(folder, "new"), digest);
    };
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
