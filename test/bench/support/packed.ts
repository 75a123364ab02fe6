import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { pack } from "../../../pack.ts";
import type { Server } from "./compareServers.ts";
import { startForebay, THIS_TREE } from "./forebay.ts";

const MIB = 1024 * 1024;
/** Beside the repository's node_modules, so that the package finds its dependencies. Two benches may run at once. */
const FOLDER = fileURLToPath(new URL(`dist/bench-${process.pid}/`, THIS_TREE));

/** The package, as a user installs it. Its temporary files, the compile cache among them, are in a folder of their own. */
export interface Packed {
  /** Starts a process with the defaults in front of a node. Resolves when it listens. */
  start(upstreamPort: number): Promise<Server>;
  remove(): void;
}

export const packForBench = (): Packed => {
  pack(FOLDER);
  const temporary = mkdtempSync(join(tmpdir(), "forebay-bench-"));
  const { NODE_COMPILE_CACHE, ...inherited } = process.env;
  const env = { ...inherited, TMPDIR: temporary, NODE_ENV: "production" };
  return {
    start: (upstreamPort) => startForebay(upstreamPort, pathToFileURL(FOLDER), env),
    remove: () => {
      rmSync(FOLDER, { recursive: true, force: true });
      rmSync(temporary, { recursive: true, force: true });
    },
  };
};

const STEP_MS = 2;

/** Repeats a request until it has a result, and resolves then. */
export const firstAnswer = async (port: number): Promise<void> => {
  const body = '{"jsonrpc":"2.0","id":1,"method":"eth_getBlockByNumber","params":["latest",false]}';
  for (;;) {
    const response = await fetch(`http://127.0.0.1:${port}/`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body,
    });
    if ((await response.text()).includes('"result":{')) {
      return;
    }
    await new Promise((resolve) => setTimeout(resolve, STEP_MS));
  }
};

/** Ends a process as an operator does, so that it stores its compile cache. */
export const stopServer = async ({ pids: [pid = 0], end }: Server): Promise<void> => {
  process.kill(pid, "SIGTERM");
  await new Promise((resolve) => setTimeout(resolve, DRAIN_MS));
  await end();
};

/** Longer than the default delay of draining. */
const DRAIN_MS = 6_000;

/** Reads the resident memory of a process, in MiB. */
export const residentMebibytes = (pid: number): number => {
  const status = readFileSync(`/proc/${pid}/status`, "latin1");
  return (Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]) * 1024) / MIB;
};
