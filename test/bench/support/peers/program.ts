import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { freePort } from "../../../support/servers/ports.ts";
import type { Server } from "../compareServers.ts";
import type { Peer } from "./peer.ts";

const START_MS = 30_000;
const STEP_MS = 2;
const BODY = '{"jsonrpc":"2.0","id":1,"method":"eth_getBlockByNumber","params":["latest",false]}';

/** How a peer's program is configured and started. */
export interface Program {
  readonly name: string;
  /** The path of its URL. */
  readonly path: string;
  /** Prints the version. */
  readonly versionArgs: readonly string[];
  /** The text of its configuration, without logs and metrics. */
  configure(port: number, nodeUrls: readonly string[]): string;
  /** Arguments and variables that name the configuration. */
  invoke(file: string): { readonly args: readonly string[]; readonly env: Readonly<Record<string, string>> };
}

/** Repeats a request until it has a result. `ended` rejects if the program ends before. */
export const firstResult = async (url: string, ended: Promise<never>, waitMs = START_MS): Promise<void> => {
  const endMs = performance.now() + waitMs;
  const ask = async (): Promise<string> => {
    const headers = { "content-type": "application/json" };
    const response = await fetch(url, { method: "POST", headers, body: BODY });
    return response.text();
  };
  for (;;) {
    const text = await Promise.race([ask().catch(String), ended]);
    if (text.includes('"result":{')) {
      return;
    }
    if (performance.now() > endMs) {
      throw new Error(`no answer at ${url}: ${text.slice(0, 300)}`);
    }
    await sleep(STEP_MS);
  }
};

const versionOf = (binary: string, args: readonly string[]): string => {
  const { stdout, stderr } = spawnSync(binary, args, { encoding: "utf8", timeout: 5_000 });
  return /v?\d+\.\d+[\w.+-]*/.exec(`${stdout}${stderr}`)?.[0] ?? "unknown";
};

/** A peer that is a program with a configuration file. */
export const peerOf = (program: Program, binary: string): Peer => ({
  name: program.name,
  caches: true,
  version: versionOf(binary, program.versionArgs),
  start: async (nodePorts): Promise<Server> => {
    const folder = mkdtempSync(join(tmpdir(), "forebay-peer-"));
    const file = join(folder, "config");
    const port = await freePort();
    const urls = nodePorts.map((each) => `http://127.0.0.1:${each}`);
    writeFileSync(file, program.configure(port, urls));
    const { args, env } = program.invoke(file);
    const child = spawn(binary, args, {
      ...{ cwd: folder, env: { ...process.env, ...env } },
      stdio: ["ignore", "ignore", "inherit"],
    });
    const exited = once(child, "exit");
    const ended = exited.then(([code]) => Promise.reject(new Error(`${program.name} ended with ${code}`)));
    ended.catch(() => undefined);
    const end = async (): Promise<void> => {
      child.kill("SIGKILL");
      await exited;
      rmSync(folder, { recursive: true });
    };
    try {
      await firstResult(`http://127.0.0.1:${port}${program.path}`, ended);
    } catch (error) {
      await end();
      throw error;
    }
    return { port, path: program.path, pids: [child.pid ?? 0], end };
  },
});
