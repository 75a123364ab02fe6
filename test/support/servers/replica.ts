import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { endWithProcess } from "../../devnet/endWithProcess.ts";
import { until } from "../clients/until.ts";

/** One process of forebay, started as in production. */
export interface Replica {
  readonly pid: number;
  /** Resolves with its exit code. */
  readonly ended: Promise<number | null>;
  stop(): void;
  kill(): void;
}

export interface ReplicaOptions {
  readonly opsPort: number;
  /** Flags of forebay. */
  readonly args: readonly string[];
  /** Flags of Node.js, for example modules that are preloaded. */
  readonly nodeArgs?: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  /** Called with each line of the log. */
  readonly onLine?: (line: string) => void;
}

const BIN = fileURLToPath(new URL("../../../src/cli/bin.ts", import.meta.url));

/** Starts a process with these flags. Resolves when it is ready for requests. */
export const launchReplica = async (options: ReplicaOptions): Promise<Replica> => {
  const { opsPort, args, nodeArgs = [], environment = {}, onLine } = options;
  const child = spawn(process.execPath, [...nodeArgs, BIN, ...args], {
    stdio: ["ignore", "pipe", "inherit"],
    env: { ...process.env, ...environment },
  });
  const forget = endWithProcess(child);
  const ended = once(child, "exit").then(([code]: (number | null)[]) => {
    forget();
    return code ?? null;
  });
  const listening = Promise.withResolvers<void>();
  createInterface({ input: child.stdout }).on("line", (line) => {
    onLine?.(line);
    if (line.includes('"listening"')) {
      listening.resolve();
    }
  });
  await Promise.race([
    listening.promise,
    ended.then((code) => Promise.reject(new Error(`forebay ended with ${code} before it listened`))),
  ]);
  await until(async () => (await fetch(`http://127.0.0.1:${opsPort}/readyz`)).status === 200, "the replica is ready");
  return {
    pid: child.pid ?? 0,
    ended,
    stop: () => {
      child.kill("SIGTERM");
    },
    kill: () => {
      if (child.exitCode === null) {
        child.kill("SIGKILL");
      }
    },
  };
};

/** Starts a process in front of one node. Resolves when it is ready for requests. */
export const startReplica = (nodeUrl: string, port: number, opsPort: number): Promise<Replica> =>
  launchReplica({ opsPort, args: ["--upstream", nodeUrl, "--port", String(port), "--ops-port", String(opsPort)] });
