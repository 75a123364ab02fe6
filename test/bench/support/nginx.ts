import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "../../support/servers/ports.ts";
import type { Server } from "./compareServers.ts";

const START_MS = 10_000;

/** One worker, no log. `servers` is the text of the upstreams and servers. */
const config = (folder: string, servers: string): string => `
daemon off; worker_processes 1; pid ${folder}/pid; error_log stderr warn;
events { worker_connections 1024; }
http {
  access_log off; client_body_temp_path ${folder}/body; proxy_temp_path ${folder}/proxy;
  fastcgi_temp_path ${folder}/f; uwsgi_temp_path ${folder}/u; scgi_temp_path ${folder}/s;
  keepalive_requests 100000000;
  ${servers}
}
`;

/** The configuration of nginx's documentation for a reverse proxy with keep-alive. */
export const proxyTo =
  (upstreamPorts: readonly number[]) =>
  (port: number): string =>
    `
  upstream node { ${upstreamPorts.map((each) => `server 127.0.0.1:${each};`).join(" ")} keepalive 256; keepalive_requests 100000000; }
  server {
    listen 127.0.0.1:${port};
    location / { proxy_pass http://node; proxy_http_version 1.1; proxy_set_header Connection ""; client_body_buffer_size 64k; }
  }
`;

const untilListening = async (port: number): Promise<void> => {
  const endMs = performance.now() + START_MS;
  for (;;) {
    const socket = connect(port, "127.0.0.1");
    try {
      await once(socket, "connect");
      return;
    } catch (error) {
      if (performance.now() > endMs) {
        throw error;
      }
      await new Promise((resolve) => setTimeout(resolve, 50));
    } finally {
      socket.destroy();
    }
  }
};

/** Resolves with the processes of the workers. The master listens before it starts them. */
const untilWorkers = async (master: number): Promise<readonly number[]> => {
  for (;;) {
    const children = readFileSync(`/proc/${master}/task/${master}/children`, "utf8").trim();
    if (children !== "") {
      return children.split(" ").map(Number);
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
};

export const hasNginx = (): boolean => spawnSync("nginx", ["-v"]).status === 0;

export const nginxVersion = (): string =>
  /\d+\.\d+\.\d+/.exec(spawnSync("nginx", ["-v"], { encoding: "utf8" }).stderr)?.[0] ?? "unknown";

/** Starts nginx as a reverse proxy in front of one port, or of several in turn. */
export const startNginx = (...upstreamPorts: number[]): Promise<Server> => startNginxWith(proxyTo(upstreamPorts));

/** Starts nginx with upstreams and servers, of which one listens on the port. */
export const startNginxWith = async (serversOf: (port: number) => string): Promise<Server> => {
  const folder = mkdtempSync(join(tmpdir(), "forebay-nginx-"));
  const port = await freePort();
  writeFileSync(join(folder, "nginx.conf"), config(folder, serversOf(port)));
  const master = spawn("nginx", ["-p", folder, "-c", join(folder, "nginx.conf")], {
    stdio: ["ignore", "inherit", "inherit"],
  });
  const ended = once(master, "exit");
  await Promise.race([
    untilListening(port),
    ended.then(([code]) => Promise.reject(new Error(`nginx ended with ${code}`))),
  ]);
  const workers = await Promise.race([
    untilWorkers(master.pid ?? 0),
    ended.then(([code]) => Promise.reject(new Error(`nginx ended with ${code}`))),
  ]);
  return {
    port,
    path: "/",
    pids: workers,
    end: async () => {
      master.kill();
      await ended;
      rmSync(folder, { recursive: true });
    },
  };
};
