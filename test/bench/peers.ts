import { setTimeout as sleep } from "node:timers/promises";
import { startChild } from "./support/child.ts";
import { type Measured, median } from "./support/compareServers.ts";
import { packForBench, residentMebibytes, stopServer } from "./support/packed.ts";
import { measureLoad, type PeerLoad, peerLoads } from "./support/peers/loads.ts";
import { createForebayPeer, forwardingPeers } from "./support/peers/ownPeers.ts";
import type { Peer } from "./support/peers/peer.ts";
import { formatTable, type PeerRow } from "./support/peers/peerTable.ts";
import { peerOf } from "./support/peers/program.ts";
import { PROGRAMS } from "./support/peers/programs.ts";
import { measureStall } from "./support/peers/stall.ts";
import { type BenchOptions, type BenchResult, round } from "./support/result.ts";

const CLAIM = "a hit, a batch of hits, a miss and a batch of misses cost less CPU than with every peer";
const IDLE_MS = 2_000;
const SHORT_IDLE_MS = 500;

type Child = ReturnType<typeof startChild>;
type Times = { readonly idleMs: number; readonly warmMs: number; readonly measureMs: number };

const memoryOf = (pids: readonly number[]): number => pids.reduce((sum, pid) => sum + residentMebibytes(pid), 0);

/** One start of a peer: time to the first answer, memory, and each load. */
const measureOnce = async (peer: Peer, loads: readonly PeerLoad[], node: Child, nodePort: number, times: Times) => {
  const startMs = performance.now();
  const server = await peer.start([nodePort]);
  const startSeconds = (performance.now() - startMs) / 1_000;
  try {
    await sleep(times.idleMs);
    const idleMebibytes = memoryOf(server.pids);
    const measured = new Map<string, Measured | undefined>();
    for (const load of loads.filter(({ isHit }) => peer.caches || !isHit)) {
      measured.set(load.name, await measureLoad(server, load, node, times));
    }
    return { startSeconds, idleMebibytes, loadedMebibytes: memoryOf(server.pids), measured };
  } finally {
    await server.end();
  }
};

type Once = Awaited<ReturnType<typeof measureOnce>>;

const rowOf = (peer: Peer, runs: readonly Once[], loads: readonly PeerLoad[]): Omit<PeerRow, "stall"> => ({
  ...{ name: peer.name, version: peer.version },
  cpuMicroseconds: loads.map(({ name }) => {
    const values = runs.flatMap(({ measured }) => measured.get(name)?.cpuMicroseconds ?? []).filter(Number.isFinite);
    return values.length === 0 ? undefined : median(values);
  }),
  startSeconds: median(runs.map(({ startSeconds }) => startSeconds)),
  idleMebibytes: median(runs.map(({ idleMebibytes }) => idleMebibytes)),
  loadedMebibytes: median(runs.map(({ loadedMebibytes }) => loadedMebibytes)),
});

/** The smallest quotient of a peer's CPU and ours, over all loads. Without a peer, that of the floor and a single call. */
const smallestRatio = ([ours, ...others]: readonly PeerRow[]) => {
  const peers = others.filter(({ name }) => PROGRAMS.some((program) => program.name === name));
  const quotients = (peers.length > 0 ? peers : others.slice(0, 1)).flatMap(({ cpuMicroseconds }) =>
    cpuMicroseconds.slice(0, peers.length > 0 ? undefined : -1).flatMap((theirs, index) => {
      const mine = ours?.cpuMicroseconds[index];
      return theirs === undefined || mine === undefined ? [] : [{ ratio: theirs / mine, mine, theirs }];
    }),
  );
  return quotients.toSorted((left, right) => left.ratio - right.ratio)[0] ?? { ratio: 0, mine: 0, theirs: 0 };
};

/** Starts the peers in turn under the same loads. A peer without a binary is left out. */
export const bench = async ({ short, binaries }: BenchOptions): Promise<BenchResult> => {
  const node = startChild("verifiedNode.ts");
  const nodePort = Number(await node.message());
  const packed = packForBench();
  const given = PROGRAMS.flatMap((program) => {
    const binary = binaries[program.name];
    return binary === undefined ? [] : [peerOf(program, binary)];
  });
  const missing = PROGRAMS.filter(({ name }) => binaries[name] === undefined).map(({ name }) => name);
  for (const name of missing) {
    console.error(`${name} is left out: give its binary with --${name} PATH`);
  }
  const forebay = createForebayPeer(packed);
  const peers = [forebay, ...forwardingPeers(), ...given];
  const times = short
    ? { idleMs: SHORT_IDLE_MS, warmMs: 300, measureMs: 700 }
    : { idleMs: IDLE_MS, warmMs: 1_500, measureMs: 4_000 };
  const runs = new Map<string, Once[]>(peers.map(({ name }) => [name, []]));
  try {
    const loads = await peerLoads(nodePort);
    if (!short) {
      // The first start stores the compile cache.
      await stopServer(await packed.start(nodePort));
    }
    for (let at = 0; at < (short ? 1 : 3); at++) {
      for (const peer of at % 2 === 0 ? peers : peers.toReversed()) {
        runs.get(peer.name)?.push(await measureOnce(peer, loads, node, nodePort, times));
      }
    }
    const rows: PeerRow[] = [];
    for (const peer of peers.filter(({ name }) => name !== "floor")) {
      const stall = await measureStall(peer, short ? 3_000 : 60_000);
      rows.push({ ...rowOf(peer, runs.get(peer.name) ?? [], loads), stall });
    }
    const floor = peers.find(({ name }) => name === "floor");
    if (floor !== undefined) {
      rows.splice(1, 0, { ...rowOf(floor, runs.get(floor.name) ?? [], loads), stall: undefined });
    }
    console.log(formatTable(rows, loads));
    const { ratio, mine, theirs } = smallestRatio(rows);
    return {
      claim: CLAIM,
      ratio: round(ratio),
      ours: round(mine),
      yardstick: round(theirs),
      unit: "microseconds of CPU per request, of the load with the smallest ratio",
      peers: peers.map(({ name, version }) => `${name} ${version}`).join(", "),
      missing: missing.join(", "),
    };
  } finally {
    packed.remove();
    await node.end();
  }
};
