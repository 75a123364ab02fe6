import { readFileSync } from "node:fs";
import { startChild } from "../child.ts";
import { startConfigured, THIS_TREE } from "../forebay.ts";
import { hasNginx, nginxVersion, startNginx } from "../nginx.ts";
import type { Packed } from "../packed.ts";
import type { Peer } from "./peer.ts";
import { firstResult } from "./program.ts";

const never = new Promise<never>(() => {});
const { version }: { version: string } = JSON.parse(readFileSync(new URL("package.json", THIS_TREE), "utf8"));

/** The package with one node, as `npm run pack` makes it. With two nodes: this tree with its defaults. */
export const createForebayPeer = (packed: Packed): Peer => ({
  name: "forebay",
  caches: true,
  version,
  start: async ([port = 0, ...more]) => {
    const nodes = [port, ...more].map((each) => ({ url: `http://127.0.0.1:${each}` }));
    const server =
      more.length === 0
        ? await packed.start(port)
        : await startConfigured({ chains: [{ name: "chain", nodes }], server: { port: 0, opsPort: 0 } });
    await firstResult(`http://127.0.0.1:${server.port}`, never);
    return server;
  },
});

/** The least that a proxy in Node.js does: node:http with undici. */
const floor: Peer = {
  name: "floor",
  caches: false,
  version: process.version,
  start: async ([port = 0]) => {
    const child = startChild("floorServer.ts", [String(port)]);
    const own = Number(await child.message());
    await firstResult(`http://127.0.0.1:${own}`, never);
    return { port: own, path: "/", pids: [child.pid], end: child.end };
  },
};

/** The proxies that forward every request, as far as they are installed. */
export const forwardingPeers = (): readonly Peer[] => [
  floor,
  ...(hasNginx()
    ? [
        {
          name: "nginx",
          caches: false,
          version: nginxVersion(),
          start: async (ports: readonly number[]) => {
            const server = await startNginx(...ports);
            await firstResult(`http://127.0.0.1:${server.port}`, never);
            return server;
          },
        },
      ]
    : []),
];
