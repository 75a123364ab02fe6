import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { startProcess } from "../../support/servers/command.ts";
import type { Server } from "./compareServers.ts";

/** The root of this checkout. */
export const THIS_TREE = new URL("../../../", import.meta.url);

/** A process of forebay, with the URL of its metrics. */
export interface ForebayServer extends Server {
  readonly opsUrl: string;
}

/** Reads the entry file of `forebay` from a checkout's manifest. */
const binOf = (tree: URL): string => {
  const manifest: { bin: { forebay: string } } = JSON.parse(readFileSync(new URL("package.json", tree), "utf8"));
  return fileURLToPath(new URL(manifest.bin.forebay, tree));
};

/** Starts the process of a checkout in front of a node, like a user. */
export const startForebay = (
  upstreamPort: number,
  tree: URL = THIS_TREE,
  env: NodeJS.ProcessEnv = process.env,
): Promise<ForebayServer> =>
  start(["--upstream", `http://127.0.0.1:${upstreamPort}`, "--port", "0", "--ops-port", "0"], tree, env);

/** A process whose configuration file can be replaced. */
export interface ConfiguredServer extends ForebayServer {
  /** Ends the process by a signal, and waits for its end. */
  stop(signal: "SIGTERM" | "SIGKILL"): Promise<void>;
  /** Replaces the configuration, and lets the process load it. */
  configure(config: object): void;
}

/** Starts the process of a checkout with a configuration. Its ports must be 0. */
export const startConfigured = async (config: object, tree: URL = THIS_TREE): Promise<ConfiguredServer> => {
  const folder = mkdtempSync(join(tmpdir(), "forebay-bench-"));
  const file = join(folder, "config.yaml");
  writeFileSync(file, JSON.stringify(config));
  const { stop, ...server } = await start(["--config", file], tree, process.env);
  const stopAndRemove = async (signal: "SIGTERM" | "SIGKILL") => {
    await stop(signal);
    rmSync(folder, { recursive: true, force: true });
  };
  return {
    ...server,
    stop: stopAndRemove,
    end: () => stopAndRemove("SIGKILL"),
    configure: (next) => {
      writeFileSync(file, JSON.stringify(next));
      for (const pid of server.pids) {
        process.kill(pid, "SIGHUP");
      }
    },
  };
};

const start = async (args: readonly string[], tree: URL, env: NodeJS.ProcessEnv) => {
  const { url, opsUrl, pid, ended, signal } = await startProcess({ args, bin: binOf(tree), env });
  const stop = async (name: "SIGTERM" | "SIGKILL"): Promise<void> => {
    signal(name);
    await ended;
  };
  return { port: Number(new URL(url).port), opsUrl, path: "/", pids: [pid], stop, end: () => stop("SIGKILL") };
};
