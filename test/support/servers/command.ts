import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import type { z } from "zod";
import type { configSchema } from "../../../src/config/schema.ts";
import { until } from "../clients/until.ts";

type Input = z.input<typeof configSchema>;

const BIN = fileURLToPath(new URL("../../../src/cli/bin.ts", import.meta.url));

/** Forebay as its command starts it. */
export interface RunningCommand {
  readonly url: string;
  readonly opsUrl: string;
  readonly pid: number;
  /** Resolves with the exit code. */
  readonly ended: Promise<number | null>;
  /** All log lines so far. */
  readonly lines: readonly Readonly<Record<string, unknown>>[];
  /** Writes another configuration; the file is watched. */
  reconfigure(config: Input): Promise<void>;
  signal(name: NodeJS.Signals): void;
  end(): Promise<void>;
}

const withDefaults = (config: Input): Input => ({
  ...config,
  server: { port: 0, opsPort: 0, drainDelayMs: 0, ...config.server },
});

/**
 * Starts forebay. Resolves when it is ready for requests. It ends with the test. `nodeArgs` are flags of Node.js. `launcher` is a
 * command that becomes the command that follows it (exec).
 */
export const startCommand = async (
  t: { after(end: () => Promise<void>): void },
  config: Input,
  nodeArgs: readonly string[] = [],
  launcher: readonly string[] = [],
): Promise<RunningCommand> => {
  const folder = await mkdtemp(join(tmpdir(), "forebay-"));
  const file = join(folder, "forebay.json");
  const reconfigure = (next: Input) => writeFile(file, JSON.stringify(withDefaults(next)));
  await reconfigure(config);
  const [command = process.execPath, ...args] = [...launcher, process.execPath, ...nodeArgs, BIN, "--config", file];
  const child = spawn(command, args, { stdio: ["ignore", "pipe", "inherit"] });
  const ended = once(child, "exit").then(([code]: (number | null)[]) => code ?? null);
  const end = async (): Promise<void> => {
    child.kill("SIGKILL");
    await ended;
    await rm(folder, { recursive: true, force: true });
  };
  t.after(end);
  const lines: Readonly<Record<string, unknown>>[] = [];
  const started = Promise.withResolvers<{ readonly url: string; readonly opsUrl: string }>();
  createInterface({ input: child.stdout }).on("line", (line) => {
    const entry = JSON.parse(line);
    lines.push(entry);
    if (entry.listening !== undefined) {
      started.resolve({ url: entry.listening, opsUrl: entry.ops });
    }
  });
  const early = ended.then((code) => Promise.reject(new Error(`forebay ended with ${code} before it listened`)));
  early.catch(() => undefined);
  const { url, opsUrl } = await Promise.race([started.promise, early]);
  await until(async () => (await fetch(`${opsUrl}/readyz`)).status === 200, "forebay is ready");
  return {
    url,
    opsUrl,
    pid: child.pid ?? 0,
    ended,
    lines,
    reconfigure,
    signal: (name) => {
      child.kill(name);
    },
    end,
  };
};
