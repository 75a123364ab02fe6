import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { until } from "../clients/until.ts";

/** One process of forebay, started as in production. */
export interface Replica {
  readonly pid: number;
  /** Resolves with its exit code. */
  readonly ended: Promise<number | null>;
  stop(): void;
  kill(): void;
}

const BIN = fileURLToPath(new URL("../../../src/cli/bin.ts", import.meta.url));

/** Starts a process. Resolves when it is ready for requests. */
export const startReplica = async (nodeUrl: string, port: number, opsPort: number): Promise<Replica> => {
  const args = [BIN, "--upstream", nodeUrl, "--port", String(port), "--ops-port", String(opsPort)];
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
  const ended = once(child, "exit").then(([code]: (number | null)[]) => code ?? null);
  const listening = Promise.withResolvers<void>();
  createInterface({ input: child.stdout }).on("line", (line) => {
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
