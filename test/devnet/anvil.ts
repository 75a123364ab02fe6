import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { Agent, request } from "undici";
import { endWithProcess } from "./endWithProcess.ts";

/** An error that the node returned. */
export class AnvilError extends Error {
  override readonly name = "AnvilError";
  readonly code: number;
  readonly data: unknown;

  constructor(method: string, error: { code: number; message: string; data?: unknown }) {
    super(error.message, { cause: method });
    this.code = error.code;
    this.data = error.data;
  }
}

export interface Anvil {
  readonly url: string;
  readonly port: number;
  readonly pid: number | undefined;
  /** Sends the body of a JSON-RPC request unchanged, and returns the response unchanged. */
  post(body: string): Promise<string>;
  call(method: string, ...params: readonly unknown[]): Promise<unknown>;
  /** Sends calls of one method in parallel. Returns the results in order. */
  callAll(method: string, params: readonly (readonly unknown[])[]): Promise<unknown[]>;
  /**
   * Sends a call that mines or replaces blocks, while no other call runs. While anvil mines, a read at the newest block's hash
   * returns the state of the next block.
   */
  mine(method: "evm_mine" | "anvil_reorg", ...params: readonly unknown[]): Promise<void>;
  close(): Promise<void>;
}

interface RpcResponse {
  readonly id: number;
  readonly result?: unknown;
  readonly error?: { code: number; message: string; data?: unknown };
}

const START_TIMEOUT_MS = 60_000;
/** anvil executes without a limit of time. A random program has taken 15 s on a busy machine. */
const ANSWER_TIMEOUT_MS = 120_000;
const STOP_TIMEOUT_MS = 3_000;

/**
 * Returns the binary of the platform, as a module at `from` finds it. The wrapper of npm would be one more process to end.
 * Throws an error that says how to install it.
 */
export const findAnvil = (from: string): string => {
  const platform = `${process.platform}-${process.arch === "x64" ? "amd64" : process.arch}`;
  try {
    const wrapper = createRequire(from).resolve("@foundry-rs/anvil/package.json");
    const manifest = createRequire(wrapper).resolve(`@foundry-rs/anvil-${platform}/package.json`);
    return join(dirname(manifest), "bin", "anvil");
  } catch (error) {
    throw new Error(`anvil is missing: \`npm ci\` installs it (the packages @foundry-rs/anvil and anvil-${platform})`, {
      cause: error,
    });
  }
};

const awaitPort = (child: ChildProcess): Promise<number> =>
  new Promise((resolve, reject) => {
    let output = "";
    const timer = setTimeout(() => reject(new Error(`anvil did not start: ${output}`)), START_TIMEOUT_MS);
    const read = (chunk: Buffer) => {
      output += chunk.toString();
      const port = /Listening on [^\s:]+:(\d+)/.exec(output)?.[1];
      if (port === undefined) {
        return;
      }
      clearTimeout(timer);
      // anvil writes a line for each call. Read them, or it would block.
      child.stdout?.off("data", read).resume();
      child.stderr?.off("data", read).resume();
      resolve(Number(port));
    };
    child.stdout?.on("data", read);
    child.stderr?.on("data", read);
    child.once("error", reject);
    child.once("exit", (code) => {
      clearTimeout(timer);
      reject(new Error(`anvil ended with ${code}: ${output}`));
    });
  });

const stop = async (child: ChildProcess): Promise<void> => {
  if (child.exitCode !== null || child.signalCode !== null) {
    return;
  }
  const ended = once(child, "exit");
  child.kill("SIGTERM");
  const timer = setTimeout(() => child.kill("SIGKILL"), STOP_TIMEOUT_MS);
  await ended;
  clearTimeout(timer);
};

/** Creates two ways to run actions: `beside` others, and `alone`, after those that run and before those that come. */
const createGate = () => {
  const running = new Set<Promise<unknown>>();
  let last: Promise<unknown> = Promise.resolve();
  return {
    beside: async <T>(act: () => Promise<T>): Promise<T> => {
      await last;
      const run = act();
      const ended = run.catch(() => undefined).finally(() => running.delete(ended));
      running.add(ended);
      return run;
    },
    alone: <T>(act: () => Promise<T>): Promise<T> => {
      const run = last.then(() => Promise.all(running)).then(act);
      last = run.catch(() => undefined);
      return run;
    },
  };
};

/** Starts a real node on `port`, or on a free one. It is ended by its process id. */
export const startAnvil = async (args: readonly string[], port = 0): Promise<Anvil> => {
  const child = spawn(findAnvil(import.meta.url), ["--port", String(port), "--no-request-size-limit", ...args], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  const forget = endWithProcess(child);
  let listening: number;
  try {
    listening = await awaitPort(child);
  } catch (error) {
    await stop(child);
    forget();
    throw error;
  }
  const url = `http://127.0.0.1:${listening}`;
  const dispatcher = new Agent({ connections: 8, headersTimeout: ANSWER_TIMEOUT_MS });
  let nextId = 1;

  const gate = createGate();
  const send = async (body: string): Promise<string> => {
    const headers = { "content-type": "application/json" };
    const answer = await request(url, { method: "POST", headers, body, dispatcher });
    return answer.body.text();
  };
  const post = (body: string): Promise<string> => gate.beside(() => send(body));
  const callBy = async (by: typeof post, method: string, params: readonly unknown[]): Promise<unknown> => {
    const body = JSON.stringify({ jsonrpc: "2.0", id: nextId++, method, params });
    const { result, error }: RpcResponse = JSON.parse(await by(body));
    if (error !== undefined) {
      throw new AnvilError(method, error);
    }
    return result;
  };

  const callAll = async (method: string, params: readonly (readonly unknown[])[]): Promise<unknown[]> => {
    if (params.length === 0) {
      return [];
    }
    const first = nextId;
    nextId += params.length;
    const calls = params.map((each, at) => ({ jsonrpc: "2.0", id: first + at, method, params: each }));
    const responses: RpcResponse[] = JSON.parse(await post(JSON.stringify(calls)));
    return responses
      .toSorted((a, b) => a.id - b.id)
      .map(({ result, error }) => {
        if (error !== undefined) {
          throw new AnvilError(method, error);
        }
        return result;
      });
  };

  return {
    url,
    port: listening,
    pid: child.pid,
    post,
    callAll,
    call: (method, ...params) => callBy(post, method, params),
    mine: async (method, ...params) => {
      await gate.alone(() => callBy(send, method, params));
    },
    close: async () => {
      await dispatcher.destroy();
      await stop(child);
      forget();
    },
  };
};
