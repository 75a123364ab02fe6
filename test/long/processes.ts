import { setTimeout as sleep } from "node:timers/promises";
import { type HeadOrder, readHeadOrder } from "../support/clients/headOrder.ts";
import { metric } from "../support/clients/rpc.ts";
import { until } from "../support/clients/until.ts";
import { createFakeChain } from "../support/fakes/fakeChain.ts";
import { createFakeNode } from "../support/fakes/fakeNode.ts";
import { startProcesses } from "../support/servers/processes.ts";

interface ProcessesOptions {
  readonly seconds?: number | undefined;
}

const READS = 100_000;
const READS_A_SECOND = 1_000;
const READS_A_STEP = 1_000;
const READERS = 4;
/** One process is stopped and one is killed in this number of steps. */
const STEPS_A_FAULT = 10;
const BLOCK_MS = 25;
const STOPPED_MS = 600;

/**
 * Reads the head 100,000 times over connections of their own, while a block is mined every 25 ms. In turn, a serving process is
 * stopped for a while, or killed. No answer is older than one that arrived before the request was sent.
 * Only reads on connections of a killed process may fail.
 */
export const long = async ({ seconds }: ProcessesOptions) => {
  const reads = seconds === undefined ? READS : Math.min(READS, seconds * READS_A_SECOND);
  const ends: (() => Promise<void>)[] = [];
  const chain = createFakeChain();
  const node = await createFakeNode({ chain });
  const nodes = [{ url: node.url, wsUrl: node.wsUrl }];
  const forebay = await startProcesses({ after: (end) => ends.push(end) }, { chains: [{ name: "chain", nodes }] });
  const mining = setInterval(() => chain.mine(), BLOCK_MS);
  const results: HeadOrder[] = [];
  let kills = 0;
  try {
    for (let step = 0; results.reduce((sum, order) => sum + order.reads, 0) < reads; step++) {
      await until(async () => (await metric(forebay.opsUrl, "forebay_processes ")) === 2, "both processes listen");
      const pids = await forebay.servingPids();
      const pid = pids[step % pids.length];
      const reading = readHeadOrder({ url: forebay.url, reads: READS_A_STEP, readers: READERS });
      if (pid !== undefined && step % STEPS_A_FAULT === 1) {
        process.kill(pid, "SIGSTOP");
        await sleep(STOPPED_MS);
        process.kill(pid, "SIGCONT");
      } else if (pid !== undefined && step % STEPS_A_FAULT === 6) {
        kills++;
        process.kill(pid, "SIGKILL");
      }
      results.push(await reading);
    }
  } finally {
    clearInterval(mining);
    await Promise.all(ends.map((end) => end()));
    await node.close();
  }
  const older = results.flatMap((order) => order.older);
  const failed = results.reduce((sum, order) => sum + order.failed, 0);
  return {
    name: "processes",
    passed: older.length === 0 && failed <= kills * READERS,
    reads: results.reduce((sum, order) => sum + order.reads, 0),
    older: older.slice(0, 10),
    failed,
    kills,
    blocks: Number(chain.latest.number),
  };
};
