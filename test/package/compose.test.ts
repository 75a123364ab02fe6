import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { parse } from "yaml";
import { z } from "zod";
import { readArguments, readConfig } from "../../src/config/readConfig.ts";
import { STATE_SAVE_MS } from "../../src/state/rows/stateRows.ts";
import { FOLDER_CLOSE_MS } from "../../src/storage/dataStorage.ts";

const ROOT = new URL("../../", import.meta.url);
const ALERTS = "/etc/prometheus/alerts.yaml";

const composeFile = z.object({
  services: z.record(
    z.string(),
    z.looseObject({
      configs: z.array(z.strictObject({ source: z.string(), target: z.string() })).default([]),
      volumes: z.array(z.string()).default([]),
      stop_grace_period: z.string().optional(),
    }),
  ),
  volumes: z.record(z.string(), z.null()),
  configs: z.record(z.string(), z.strictObject({ content: z.string() })),
});

const {
  services,
  configs,
  volumes: named,
} = composeFile.parse(parse(readFileSync(new URL("compose.yaml", ROOT), "utf8")));
/** The value that compose passes to forebay. */
const contentOf = (name: string): string => (configs[name]?.content ?? "").replaceAll("$$", "$");

const inFile = async <T>(text: string, run: (file: string) => T): Promise<T> => {
  const folder = await mkdtemp(join(tmpdir(), "forebay-compose-"));
  try {
    const file = join(folder, "file.yaml");
    await writeFile(file, text);
    return run(file);
  } finally {
    await rm(folder, { recursive: true });
  }
};

test("every file and every config that a service mounts is there", () => {
  for (const { configs: mounted, volumes } of Object.values(services)) {
    for (const { source } of mounted) {
      assert.ok(source in configs, source);
    }
    for (const volume of volumes) {
      const [from = ""] = volume.split(":");
      assert.ok(from.startsWith(".") ? existsSync(new URL(from, ROOT)) : from in named, volume);
    }
  }
});

test("forebay reads its configuration, the node's URL from the environment", async () => {
  const environment = { NODE_URL: "http://node:8545" };
  const config = await inFile(contentOf("forebay"), (file) =>
    readConfig(readArguments(["--config", file], {}), environment),
  );
  assert.equal(config.chains[0]?.nodes[0]?.url, environment.NODE_URL);
  assert.equal(config.server.opsHost, "0.0.0.0", "Prometheus asks from another container");
  const { drainDelayMs, drainTimeoutMs } = config.server;
  const endMs = drainDelayMs + drainTimeoutMs + STATE_SAVE_MS + FOLDER_CLOSE_MS;
  const [, systemd] = /^TimeoutStopSec=(\d+)$/m.exec(readFileSync(new URL("docs/operate.md", ROOT), "utf8")) ?? [];
  for (const seconds of [services.forebay?.stop_grace_period ?? "", systemd ?? ""]) {
    assert.ok(Number.parseInt(seconds, 10) * 1000 > endMs, seconds);
  }
});

const hasPromtool = spawnSync("promtool", ["--version"]).status === 0;

test("promtool: Prometheus reads its configuration", { skip: !hasPromtool && "no promtool" }, async () => {
  assert.ok(services.prometheus?.volumes.some((volume) => volume.includes(ALERTS)));
  const text = contentOf("prometheus").replace(ALERTS, fileURLToPath(new URL("grafana/alerts.yaml", ROOT)));
  const { status, stdout, stderr } = await inFile(text, (file) =>
    spawnSync("promtool", ["check", "config", file], { encoding: "utf8" }),
  );
  assert.equal(status, 0, stdout + stderr);
});

test("the image copies existing files, and starts without a shell", () => {
  const dockerfile = readFileSync(new URL("Dockerfile", ROOT), "utf8");
  const allowed = readFileSync(new URL(".dockerignore", ROOT), "utf8").split("\n");
  for (const [, sources = ""] of dockerfile.matchAll(/^COPY (?!--from)(.+) \S+$/gm)) {
    for (const source of sources.split(" ")) {
      assert.ok(allowed.includes(`!${source}`), `${source} in .dockerignore`);
    }
  }
  assert.match(dockerfile, /^ENTRYPOINT \["node", /m);
  assert.match(dockerfile, /^USER 1000$/m);
});

test("the image loads modules that exist", () => {
  const dockerfile = readFileSync(new URL("Dockerfile", ROOT), "utf8");
  const [, list = ""] = /for \(const task of \[(.*?)\]\)/.exec(dockerfile) ?? [];
  const modules = list.split(", ").map((quoted) => quoted.replaceAll('"', ""));
  const missing = modules.filter((name) => !existsSync(new URL(`src/${name}.ts`, ROOT)));
  assert.deepEqual(missing, []);
});
