import { until } from "../../../support/clients/until.ts";
import { startChild } from "../child.ts";
import type { Server } from "../compareServers.ts";
import { startConfigured } from "../forebay.ts";
import { type Curve, type CurveOptions, callBody, cpuOf, idleCpu, type Point } from "./curve.ts";

const CONNECTIONS = 32;
const BODY = callBody("eth_getBalance", [`0x${"11".repeat(20)}`, "0x10"]);

const isServed = async (url: string): Promise<boolean> => {
  const response = await fetch(url, { method: "POST", headers: { "content-type": "application/json" }, body: BODY });
  return (await response.text()).includes('"result"');
};

const start = async (nodePort: number, count: number): Promise<Server> => {
  const chains = Array.from({ length: count }, (_, index) => ({
    name: `chain${index + 1}`,
    nodes: [{ url: `http://127.0.0.1:${nodePort}/${index}` }],
    pending: { mode: "node" },
  }));
  const server = await startConfigured({ chains, server: { port: 0, opsPort: 0 } });
  const path = `/chain${count}`;
  await until(() => isServed(`http://127.0.0.1:${server.port}${path}`), `${path} is served`);
  return { ...server, path };
};

/** Hits of one chain by the number of chains that are followed. */
export const measureChains = async (options: CurveOptions): Promise<Curve> => {
  const node = startChild("missServer.ts");
  const nodePort = Number(await node.message());
  const points: Point[] = [];
  try {
    for (const x of options.short ? [1, 10] : [1, 3, 10, 30, 100]) {
      const server = await start(nodePort, x);
      const idle = options.short ? undefined : await idleCpu(server);
      const forebay = await cpuOf(server, { body: BODY, connections: CONNECTIONS }, options);
      points.push({ x, forebay, ...(idle !== undefined && { idle }) });
      await server.end();
    }
  } finally {
    await node.end();
  }
  return { name: "chains", points };
};
