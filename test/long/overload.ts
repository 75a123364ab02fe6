import { setTimeout as sleep } from "node:timers/promises";
import { createFakeChain } from "../support/fakes/fakeChain.ts";
import { createFakeNode } from "../support/fakes/fakeNode.ts";
import { startCommand } from "../support/servers/command.ts";
import { withLifespan } from "../support/servers/withLifespan.ts";
import { startBoundedNode } from "./support/boundedNode.ts";
import type { LongOptions } from "./support/longOptions.ts";
import { countOf, type Offered, offerLoad } from "./support/openLoad.ts";

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
/** A burst is accepted, so that an overload is known after some time. */
const DETECTION_MS = 4_000;
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
const recoveryOf = (load: readonly Offered[]): number => {
  const windows = [...Map.groupBy(load, ({ atMs }) => Math.floor(atMs / WINDOW_MS))];
  const bad = windows.filter(([, window]) => countOf(window, "inTime") < window.length * SUSTAINABLE_SHARE);
  return (Math.max(-1, ...bad.map(([index]) => index)) + 1) * WINDOW_MS;
};

const describe = (load: readonly Offered[]) => ({
  offered: load.length,
  ...Object.fromEntries((["inTime", "refused", "late", "other"] as const).map((kind) => [kind, countOf(load, kind)])),
  errors: [...new Set(load.flatMap(({ text }) => text ?? []))],
});

/**
 * Offers more and more requests a second, until two steps in a row have less than SUSTAINABLE_SHARE of them answered in time.
 * The first step, at the lowest rate, warms the process up.
 */
const findSustainable = async (url: string) => {
  await offerLoad(url, FIRST_RATE, STEP_MS);
  let [rate, failures] = [FIRST_RATE, 0];
  let sustainable = { rate: 0, goodput: 0 };
  for (let step = 0; step < MAX_STEPS && failures < 2; step++) {
    const load = await offerLoad(url, rate, STEP_MS);
    const inTime = countOf(load, "inTime");
    if (inTime < load.length * SUSTAINABLE_SHARE) {
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
export const long = ({ seconds = WHOLE_SECONDS }: LongOptions) =>
  withLifespan(async (t) => {
    const inner = await createFakeNode({ chain: createFakeChain({ height: 400 }), handlers: HANDLERS });
    t.after(() => inner.close());
    const node = await startBoundedNode(inner.url);
    t.after(() => node.close());
    const { url } = await startCommand(t, {
      chains: [
        {
          name: "chain",
          nodes: [{ url: node.url, concurrency: 32 }],
          upstream: { timeoutMs: TIMEOUT_MS, maxWaiting: MAX_WAITING },
          verify: "cheap",
          forks: "prague",
          blockTimeMs: 2_000,
        },
      ],
    });
    const sustainable = await findSustainable(url);
    await sleep(WINDOW_MS);
    const rate = sustainable.rate * OVERLOAD_FACTOR;
    const over = await offerLoad(url, rate, seconds * 1_000);
    const after = await offerLoad(url, sustainable.rate * RECOVERY_FACTOR, RECOVERY_MS);
    const goodput = countOf(over, "inTime") / seconds;
    const recoveryMs = recoveryOf(after);
    const known = over.filter(({ atMs }) => atMs >= DETECTION_MS);
    const lateASecond = countOf(known, "late") / Math.max(1, seconds - DETECTION_MS / 1_000);
    return {
      name: "overload",
      passed:
        goodput >= MIN_GOODPUT_SHARE * sustainable.goodput &&
        recoveryMs <= MAX_RECOVERY_MS &&
        lateASecond <= MAX_LATE_A_SECOND &&
        countOf(over, "other") === 0,
      ...{ sustainable, offered: rate, goodput, share: goodput / sustainable.goodput, lateASecond, recoveryMs },
      ...{ over: describe(over), after: describe(after) },
    };
  });
