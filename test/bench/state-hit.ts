import { setTimeout as sleep } from "node:timers/promises";
import { rpc } from "../support/clients/rpc.ts";
import { until } from "../support/clients/until.ts";
import { createWalletCalls, poolAddress, type WalletCall } from "../world/state/walletWorld.ts";
import { startChild } from "./support/child.ts";
import { alternate, cpuResult, type Measured, medianOf, type Server } from "./support/compareServers.ts";
import { startConfigured } from "./support/forebay.ts";
import { type BenchOptions, type BenchResult, round } from "./support/result.ts";
import type { NodesUrls, WalletNodesOptions } from "./support/walletNode.ts";

const CLAIM =
  "a plain read of known state costs at most 1.2 times the CPU of a hit in memory: at least 0.83; of proven state at most 1.03 times that of known state";
const WALLETS = 20;
const BLOCK_MS = 1_000;
const COMPILE_MS = 4_000;

/** No block writes it, so that no list proves it. */
const READ: WalletCall = { method: "eth_getBalance", params: [poolAddress(0), "latest"] };
/** Reads that make it pay to follow state. */
const OTHERS: readonly WalletCall[] = Array.from({ length: WALLETS }, (_, wallet) => createWalletCalls(wallet)(false))
  .flat()
  .filter(({ method }) => method === READ.method);

/** A chain of a service, and the headers of the read when it is a hit. */
interface Subject {
  readonly server: Server;
  readonly hit: string;
  readonly label: "proven" | "stated";
}

/** Repeats reads of all wallets until the read is a hit of this kind. */
const warm = ({ server: { port, path }, hit, label }: Subject): Promise<void> =>
  until(async () => {
    const url = `http://127.0.0.1:${port}${path}`;
    for (const { method, params } of OTHERS) {
      await rpc(url, method, params);
    }
    const { headers } = await rpc(url, READ.method, READ.params);
    return (
      headers.get("cache-status")?.includes(`detail=${hit}`) === true &&
      headers.get("x-forebay-proof")?.startsWith(label) === true
    );
  }, `the balance is a hit: ${hit}, ${label}`);

/** Two chains of one process, whose values are proven or not, and a process that follows no state. */
const startSubjects = async (urls: NodesUrls, servers: Server[]) => {
  const start = async (names: readonly string[], forks: "amsterdam" | "prague", states: readonly object[]) => {
    const chains = names.map((name, index) => ({
      ...{ name, nodes: [{ url: urls[name]?.url }], forks, blockTimeMs: BLOCK_MS, state: states[index] },
    }));
    const server = await startConfigured({ chains, server: { port: 0, opsPort: 0 } });
    servers.push(server);
    return server;
  };
  const ours = await start(["known", "proven"], "amsterdam", [{ prove: false }, {}]);
  const yardstick = await start(["memory"], "prague", [{ follow: false }]);
  return {
    known: { server: { ...ours, path: "/known" }, hit: "state", label: "stated" },
    proven: { server: { ...ours, path: "/proven" }, hit: "state", label: "proven" },
    memory: { server: { ...yardstick, path: "/memory" }, hit: "memory", label: "stated" },
  } as const satisfies Record<string, Subject>;
};

/** The CPU of a proven read beside that of a known one. */
const provenResult = (results: { readonly ours: readonly Measured[]; readonly yardstick: readonly Measured[] }) => {
  const proven = medianOf(results.ours, "cpuMicroseconds");
  const known = medianOf(results.yardstick, "cpuMicroseconds");
  return { proven: round(proven), knownBeside: round(known), provenOfKnown: round(proven / known) };
};

/** Compares the CPU time of a read of known state with that from the memory cache. A read of proven state is compared with it. */
export const bench = async ({ short }: BenchOptions): Promise<BenchResult> => {
  const node = startChild("walletNode.ts");
  const servers: Server[] = [];
  try {
    const options: WalletNodesOptions = {
      ...{ blockMs: BLOCK_MS, wallets: WALLETS, pools: 1 },
      nodes: [
        { name: "known", source: "accessList" },
        { name: "proven", source: "accessList" },
        { name: "memory", source: "none" },
      ],
    };
    node.send(options);
    const { known, proven, memory } = await startSubjects((await node.message()) as NodesUrls, servers);
    await Promise.all([known, proven].map(warm));
    // No further block ends the response in memory.
    node.send("stop");
    await node.message();
    await sleep(2 * BLOCK_MS);
    await Promise.all([known, proven, memory].map(warm));
    const load = {
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, ...READ }),
      connections: 32,
      warmMs: short ? 500 : 1_000,
      measureMs: short ? 1_000 : 4_000,
    };
    const rounds = short ? 5 : 9;
    for (const other of [memory, proven]) {
      await alternate(known.server, other.server, { ...load, measureMs: short ? load.measureMs : COMPILE_MS }, 1);
    }
    const hits = await alternate(known.server, memory.server, load, rounds);
    const proofs = await alternate(proven.server, known.server, load, rounds);
    return { claim: CLAIM, ...cpuResult(hits), ...provenResult(proofs) };
  } finally {
    await Promise.all(servers.map((server) => server.end()));
    await node.end();
  }
};
