import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { freePort } from "../bench/support/nginx.ts";
import { createFakeChain } from "../support/fakes/fakeChain.ts";
import { createFakeNode } from "../support/fakes/fakeNode.ts";
import { launchReplica } from "../support/servers/replica.ts";
import { startBoundedNode } from "./support/boundedNode.ts";
import { type OpenLoad, startOpenLoad } from "./support/openLoad.ts";

const WHOLE_SECONDS = 300;
/** Offered requests a second at the first step; each step offers more. */
const FIRST_RATE = 40;
const RATE_STEP = 1.25;
const STEP_MS = 3_000;
const MAX_STEPS = 16;
/** A load is sustainable if this share of its requests is answered in time. */
const SUSTAINABLE_SHARE = 0.97;
const MIN_GOODPUT_SHARE = 0.9;
const OVERLOAD_FACTOR = 2;
/** After the overload, half of the sustainable load is offered. */
const RECOVERY_FACTOR = 0.5;
const RECOVERY_MS = 10_000;
const MAX_RECOVERY_MS = 5_000;
const WINDOW_MS = 1_000;
/** A burst is accepted, so that an overload is known after some windows. */
const DETECTION_WINDOWS = 4;
const TIMEOUT_MS = 2_000;
const MAX_WAITING = 100;
/**
 * Refusals of an overload are early. Calls that were accepted may wait to their deadline: at most a whole queue for each time-out.
 */
const MAX_LATE_A_SECOND = MAX_WAITING / (TIMEOUT_MS / 1_000);

/** State that simulations read. */
const HANDLERS = {
  eth_call: () => "0x",
  eth_getCode: () => "0x",
  eth_getTransactionCount: () => "0x0",
  eth_getStorageAt: () => `0x${"0".repeat(64)}`,
};

/** Returns the time after which each further window had all its answers in time. */
const recoveryOf = (load: OpenLoad): number => {
  const bad = load.windows.findLastIndex(({ offered, inTime }) => offered > 0 && inTime < offered * SUSTAINABLE_SHARE);
  return (bad + 1) * WINDOW_MS;
};

/**
 * Offers more and more requests a second, until two steps in a row have less than SUSTAINABLE_SHARE of them answered in time.
 * The first step, at the lowest rate, warms the process up.
 */
const findSustainable = async (url: string) => {
  const offer = async (rate: number) =>
    (await startOpenLoad({ url, rate, durationMs: STEP_MS, windowMs: WINDOW_MS }).ended).total;
  await offer(FIRST_RATE);
  let [rate, failures] = [FIRST_RATE, 0];
  let sustainable = { rate: 0, goodput: 0 };
  for (let step = 0; step < MAX_STEPS && failures < 2; step++) {
    const { inTime, offered } = await offer(rate);
    if (inTime < offered * SUSTAINABLE_SHARE) {
      failures++;
    } else {
      failures = 0;
      sustainable = { rate, goodput: inTime / (STEP_MS / 1_000) };
    }
    rate *= RATE_STEP;
  }
  if (sustainable.rate === 0) {
    throw new Error(`${FIRST_RATE} requests a second are too many`);
  }
  return sustainable;
};

/**
 * Offers twice the sustainable load to one process, with a fixed rate of arrivals: hits, reads that only the node answers,
 * and simulations. The node answers a bounded number of calls a second.
 */
export const long = async ({ seconds = WHOLE_SECONDS }: { readonly seconds: number | undefined }) => {
  const chain = createFakeChain({ height: 400 });
  const inner = await createFakeNode({ chain, handlers: HANDLERS });
  const node = await startBoundedNode(inner.url);
  const [port, opsPort] = await Promise.all([freePort(), freePort()]);
  const folder = await mkdtemp(join(tmpdir(), "forebay-overload-"));
  const file = join(folder, "config.yaml");
  const chains = [
    {
      name: "chain",
      nodes: [{ url: node.url, concurrency: 32 }],
      upstream: { timeoutMs: TIMEOUT_MS, maxWaiting: MAX_WAITING },
      verify: "cheap",
      forks: "prague",
      blockTimeMs: 2_000,
    },
  ];
  await writeFile(file, JSON.stringify({ chains, server: { port, opsPort }, log: { level: "info" } }));
  const replica = await launchReplica({
    opsPort,
    args: ["--config", file],
  });
  const url = `http://127.0.0.1:${port}/`;
  try {
    const sustainable = await findSustainable(url);
    await sleep(WINDOW_MS);
    const rate = sustainable.rate * OVERLOAD_FACTOR;
    const over = await startOpenLoad({ url, rate, durationMs: seconds * 1_000, windowMs: WINDOW_MS }).ended;
    const after = await startOpenLoad({
      url,
      rate: sustainable.rate * RECOVERY_FACTOR,
      durationMs: RECOVERY_MS,
      windowMs: WINDOW_MS,
    }).ended;
    const goodput = over.total.inTime / seconds;
    const recoveryMs = recoveryOf(after);
    const known = over.windows.slice(DETECTION_WINDOWS);
    const lateASecond = known.reduce((sum, { late }) => sum + late, 0) / (known.length * (WINDOW_MS / 1_000));
    return {
      name: "overload",
      passed:
        goodput >= MIN_GOODPUT_SHARE * sustainable.goodput &&
        recoveryMs <= MAX_RECOVERY_MS &&
        lateASecond <= MAX_LATE_A_SECOND &&
        over.total.other === 0,
      sustainable,
      offered: rate,
      goodput,
      share: goodput / sustainable.goodput,
      lateASecond,
      recoveryMs,
      over: over.total,
      after: after.total,
    };
  } finally {
    replica.kill();
    await replica.ended;
    await Promise.all([node.close(), inner.close(), rm(folder, { recursive: true })]);
  }
};
