import type { Server } from "../../bench/support/compareServers.ts";
import { hasNginx, nginxVersion, proxyTo, startNginx } from "../../bench/support/nginx.ts";
import { type Program, peerOf } from "../../bench/support/peers/program.ts";
import type { Lifespan } from "../../support/servers/redis.ts";
import type { ProxySetup, RunningProxy, TestedProxy } from "./proxy.ts";

/** The port of a printed template. */
const EXAMPLE_PORT = 8_545;

const portsOf = (urls: readonly string[]): number[] => urls.map((url) => Number(new URL(url).port));

/** Runs instances of a proxy that is a program. A restart may change the port. */
const runServers = async (
  t: Lifespan,
  { nodeUrls, replicas }: ProxySetup,
  start: (nodePorts: readonly number[]) => Promise<Server>,
): Promise<RunningProxy> => {
  const ports = portsOf(nodeUrls);
  const servers = await Promise.all(Array.from({ length: replicas }, () => start(ports)));
  t.after(() => Promise.all(servers.map((server) => server.end())));
  return {
    instances: () =>
      servers.map(({ port, path }, index) => ({ label: String(index), url: `http://127.0.0.1:${port}${path}` })),
    restart: async (index) => {
      await servers[index]?.end();
      servers[index] = await start(ports);
    },
  };
};

/** nginx in front of all nodes in turn. Undefined if it is not installed. */
export const nginxProxy = (): TestedProxy | undefined =>
  hasNginx()
    ? {
        name: "nginx",
        version: nginxVersion(),
        offers: new Set(["restart", "replicas"]),
        start: (t, setup) => runServers(t, setup, (ports) => startNginx(...ports)),
        template: ({ nodeUrls }) => proxyTo(portsOf(nodeUrls))(EXAMPLE_PORT),
      }
    : undefined;

/** A peer whose binary is given. */
export const programProxy = (program: Program, binary: string): TestedProxy => {
  const peer = peerOf(program, binary);
  return {
    name: peer.name,
    version: peer.version,
    offers: new Set(["restart", "replicas"]),
    start: (t, setup) => runServers(t, setup, (ports) => peer.start(ports)),
    template: ({ nodeUrls }) => program.configure(EXAMPLE_PORT, nodeUrls),
  };
};
