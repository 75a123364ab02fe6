import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";

const END_MS = 30_000;
/** A command that takes longer, such as a download that stalled, is ended. */
const MAX_MS = 600_000;

export interface CommandOptions {
  readonly folder: string;
  readonly env: NodeJS.ProcessEnv;
  /** Called with each line of output. */
  readonly onLine: (line: string) => void;
  /** With it, `whileRunning` is called at a line that matches. Then the command gets Ctrl-C. */
  readonly until?: RegExp | undefined;
  readonly whileRunning?: ((output: string) => Promise<void>) | undefined;
}

export interface Ended {
  readonly code: number | null;
  readonly seconds: number;
  /** Whether a line matched `until`. */
  readonly matched: boolean;
  /** Whether a process of the command still ran after its end. */
  readonly left: boolean;
}

/** Ctrl-C in a terminal reaches every process of the command. Returns false if none is left. */
const signalAll = ({ pid = 0 }: ChildProcess, signal: NodeJS.Signals | 0): boolean => {
  try {
    return process.kill(-pid, signal);
  } catch {
    return false;
  }
};

/** Runs a command line in a shell, in a process group of its own. */
export const runCommand = async (command: string, options: CommandOptions): Promise<Ended> => {
  const { folder, env, until, whileRunning } = options;
  const startedMs = performance.now();
  const child = spawn("bash", ["-c", `exec 2>&1; ${command}`], {
    ...{ cwd: folder, env, detached: true },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const exited = once(child, "exit");
  const overdue = setTimeout(() => signalAll(child, "SIGKILL"), MAX_MS);
  let output = "";
  let matched = false;
  for await (const line of createInterface({ input: child.stdout })) {
    options.onLine(line);
    output += `${line}\n`;
    if (until?.test(line) && !matched) {
      matched = true;
      await whileRunning?.(output);
      signalAll(child, "SIGINT");
      setTimeout(() => signalAll(child, "SIGKILL"), END_MS).unref();
    }
  }
  const [code]: (number | null)[] = await exited;
  clearTimeout(overdue);
  const left = signalAll(child, 0);
  signalAll(child, "SIGKILL");
  return { code: code ?? null, seconds: (performance.now() - startedMs) / 1_000, matched, left };
};
