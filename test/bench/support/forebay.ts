import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import type { Server } from "./compareServers.ts";

/** The whole process in front of a node, as a user starts it; it prints its URL as a line of JSON. */
export const startForebay = async (upstreamPort: number): Promise<Server> => {
  const file = fileURLToPath(new URL("../../../src/cli/bin.ts", import.meta.url));
  const args = [file, "--upstream", `http://127.0.0.1:${upstreamPort}`, "--port", "0", "--ops-port", "0"];
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
  const ended = once(child, "exit");
  const url = Promise.withResolvers<string>();
  createInterface({ input: child.stdout }).on("line", (line) => {
    try {
      const said: unknown = JSON.parse(line);
      if (typeof said === "object" && said !== null && "listening" in said && typeof said.listening === "string") {
        url.resolve(said.listening);
      }
    } catch {
      // Other lines are for people.
    }
  });
  ended.then(([code]) => url.reject(new Error(`forebay ended with ${code} before it printed its URL`)));
  return {
    port: Number(new URL(await url.promise).port),
    path: "/",
    pids: [child.pid ?? 0],
    end: async () => {
      if (child.exitCode !== null) {
        return;
      }
      child.kill("SIGKILL");
      await ended;
    },
  };
};
