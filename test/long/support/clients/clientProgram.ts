import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { endWithProcess } from "../../../devnet/endWithProcess.ts";

/** Where a client works. */
export interface Endpoint {
  readonly url: string;
  readonly wsUrl: string;
  /** The time of the genesis block. */
  readonly startSeconds: number;
}

/** The result of each step as text, or its error. */
export type Results = Readonly<Record<string, string>>;

/** No installation and no work of a client takes longer. */
const MAX_MS = 400_000;
const SHOWN_CHARACTERS = 300;

const spawnPiped = (command: string, args: readonly string[], cwd?: string, environment: NodeJS.ProcessEnv = {}) => {
  const env = { ...process.env, ...environment };
  const child = spawn(command, args, { cwd, env, stdio: ["ignore", "pipe", "pipe"], timeout: MAX_MS });
  const forget = endWithProcess(child);
  child.once("error", forget).once("close", forget);
  return child;
};

/** Runs a program. Returns what it printed. Rejects with the end of its output if it fails. */
export const runProgram = async (command: string, args: readonly string[], cwd?: string): Promise<string> => {
  const child = spawnPiped(command, args, cwd);
  const [output, errors]: [string[], string[]] = [[], []];
  child.stdout.on("data", (chunk) => output.push(String(chunk)));
  child.stderr.on("data", (chunk) => errors.push(String(chunk)));
  const [code] = await once(child, "close");
  const text = output.join("");
  if (code !== 0) {
    throw new Error(`${command} ended with ${code}: ${`${text}${errors.join("")}`.trim().slice(-SHOWN_CHARACTERS)}`);
  }
  return text;
};

const end = async (child: ChildProcess): Promise<void> => {
  if (child.exitCode === null && child.signalCode === null) {
    const closed = once(child, "close");
    child.kill("SIGKILL");
    await closed;
  }
};

export interface StartOptions {
  readonly cwd: string;
  /** What it prints when it is ready. */
  readonly ready: RegExp;
  readonly environment?: NodeJS.ProcessEnv;
}

/** Starts a program, and resolves when it is ready. `found` is the group of the pattern. */
export const startProgram = async (command: string, args: readonly string[], options: StartOptions) => {
  const child = spawnPiped(command, args, options.cwd, options.environment);
  const ready = Promise.withResolvers<string>();
  let output = "";
  const read = (chunk: Buffer): void => {
    output += String(chunk);
    const match = options.ready.exec(output);
    if (match !== null) {
      ready.resolve(match[1] ?? "");
    }
  };
  child.stdout.on("data", read);
  child.stderr.on("data", read);
  child.once("error", ready.reject);
  child.once("close", () => ready.reject(new Error(`${command} ended: ${output.slice(-SHOWN_CHARACTERS)}`)));
  return { found: await ready.promise, end: () => end(child) };
};

/** Installs packages in a folder that is a project of its own, so that npm installs nothing elsewhere. */
export const npm = async (folder: string, ...packages: readonly string[]): Promise<void> => {
  await runProgram("npm", ["init", "--yes"], folder);
  await runProgram("npm", ["pkg", "set", "type=module"], folder);
  await runProgram("npm", ["install", "--ignore-scripts", "--no-audit", "--no-fund", ...packages], folder);
};
