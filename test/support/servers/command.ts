import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import type { z } from "zod";
import type { configSchema } from "../../../src/config/schema.ts";
import { endWithProcess } from "../../devnet/endWithProcess.ts";
import { until } from "../clients/until.ts";

type Input = z.input<typeof configSchema>;

const BIN = fileURLToPath(new URL("../../../src/cli/bin.ts", import.meta.url));

/** A process of forebay that listens. */
export interface RunningProcess {
  readonly url: string;
  readonly opsUrl: string;
  readonly pid: number;
  /** Resolves with the exit code. */
  readonly ended: Promise<number | null>;
  signal(name: NodeJS.Signals): void;
}

export interface ProcessOptions {
  /** The file that starts forebay. Default: that of this tree. */
  readonly bin?: string;
  readonly args: readonly string[];
  /** Flags of Node.js, for example modules that are preloaded. */
  readonly nodeArgs?: readonly string[];
  readonly env?: NodeJS.ProcessEnv;
  /** A command that becomes the command that follows it (exec). */
  readonly launcher?: readonly string[];
  /** Called with each line of the log. */
  readonly onLine?: (line: string) => void;
}

/** Starts a process. Resolves when it listens. It ends with this process at the latest. */
export const startProcess = async (options: ProcessOptions): Promise<RunningProcess> => {
  const { bin = BIN, args, nodeArgs = [], env = process.env, launcher = [], onLine } = options;
  const [command = process.execPath, ...rest] = [...launcher, process.execPath, ...nodeArgs, bin, ...args];
  const child = spawn(command, rest, { stdio: ["ignore", "pipe", "inherit"], env });
  const forget = endWithProcess(child);
  const ended = once(child, "exit").then(([code]: (number | null)[]) => {
    forget();
    return code ?? null;
  });
  const started = Promise.withResolvers<{ readonly listening: string; readonly ops: string }>();
  let last = "";
  createInterface({ input: child.stdout }).on("line", (line) => {
    last = line;
    onLine?.(line);
    if (line.includes('"listening"')) {
      started.resolve(JSON.parse(line));
    }
  });
  const early = ended.then((code) =>
    Promise.reject(new Error(`forebay ended with ${code} before it listened: ${last}`)),
  );
  early.catch(() => undefined);
  const { listening, ops } = await Promise.race([started.promise, early]);
  return { url: listening, opsUrl: ops, pid: child.pid ?? 0, ended, signal: (name) => void child.kill(name) };
};

/** A busy process may close a connection. */
export const untilReady = ({ opsUrl }: Pick<RunningProcess, "opsUrl">): Promise<void> => {
  const isReady = (): Promise<boolean> =>
    fetch(`${opsUrl}/readyz`).then(
      ({ ok }) => ok,
      () => false,
    );
  return until(isReady, "forebay is ready");
};

/** Forebay as its command starts it. */
export interface RunningCommand extends RunningProcess {
  /** All log lines so far. */
  readonly lines: readonly Readonly<Record<string, unknown>>[];
  /** Writes another configuration; the file is watched. */
  reconfigure(config: Input): Promise<void>;
  end(): Promise<void>;
}

const withDefaults = (config: Input): Input => ({
  ...config,
  server: { port: 0, opsPort: 0, drainDelayMs: 0, ...config.server },
});

/** Starts forebay. Resolves when it is ready for requests. It ends with the test. */
export const startCommand = async (
  t: { after(end: () => Promise<void>): void },
  config: Input,
  launcher: readonly string[] = [],
): Promise<RunningCommand> => {
  const folder = await mkdtemp(join(tmpdir(), "forebay-"));
  const file = join(folder, "forebay.json");
  const reconfigure = (next: Input) => writeFile(file, JSON.stringify(withDefaults(next)));
  await reconfigure(config);
  const lines: Readonly<Record<string, unknown>>[] = [];
  const onLine = (line: string): void => void lines.push(JSON.parse(line));
  const started = await startProcess({ args: ["--config", file], launcher, onLine });
  const end = async (): Promise<void> => {
    started.signal("SIGKILL");
    await started.ended;
    await rm(folder, { recursive: true, force: true });
  };
  t.after(end);
  await untilReady(started);
  return { ...started, lines, reconfigure, end };
};
