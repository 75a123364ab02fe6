import { setTimeout as wait } from "node:timers/promises";
import { rpc } from "../support/clients/rpc.ts";
import { until } from "../support/clients/until.ts";
import { createFakeFeed, type FakeFeed } from "../support/fakes/fakeFeed.ts";
import type { Lifespan } from "../support/servers/redis.ts";
import { createService } from "../support/servers/service.ts";
import { withLifespan } from "../support/servers/withLifespan.ts";
import { createScenarios, type Plan, type Scenario } from "./feedFaults.ts";
import { framesOf, headTimes, type Recording } from "./playBuilder.ts";
import { readRecordedBuilder } from "./realBlocks.ts";
import { type RecordedNode, startRecordedNode } from "./recordedNode.ts";
import { createRecordedTruth, type RecordedTruth } from "./recordedTruth.ts";
import { watchPending } from "./watchPending.ts";

const HEAD_AFTER_MS = 60;
const CHECK_MS = 10;
const MAX_LATE_MS = 20_000;

export interface ScenarioResult {
  readonly name: string;
  readonly problems: readonly string[];
  readonly modes: readonly string[];
  readonly samples: number;
}

interface Rig {
  readonly scenario: Scenario;
  readonly node: RecordedNode;
  readonly feeds: readonly FakeFeed[];
}

/** Scenarios that run at the same time. More of them would be late on two cores. */
const WIDTH = 3;
const SHORT = [
  "no fault",
  "the feed is frozen",
  "the node is down for 1.2 s",
  "431-0 wrong receipts root, hashes zero",
  "431-3 wrong receipts root, hashes zero",
  "431-2 one transaction less",
  "two feeds: the first is corrupt, the second lags",
  "two feeds: the second is corrupt, hashes zero",
  "the last block is replaced and back",
  "a restart with an equal index 0, on another connection",
  "the last message is discarded, 50 ms before the next block",
  "a late message of the block below",
];

/** Returns the scenarios of the short form: four rounds. */
export const shortScenarios = (scenarios: readonly Scenario[]): readonly Scenario[] =>
  scenarios.filter(({ name }) => SHORT.includes(name));

/** Reads the recording, and executes it for its truth. */
export const prepareScenarios = async () => {
  const recording = readRecordedBuilder();
  const frames = framesOf(recording);
  const plan: Plan = {
    frames: frames.map(({ atMs, number, index }, at) => ({
      atMs,
      feed: 0,
      number,
      index,
      text: recording.frames[at] ?? "",
    })),
    heads: headTimes(frames, HEAD_AFTER_MS),
  };
  const prepared: Prepared = { recording, truth: await createRecordedTruth(recording), plan };
  return {
    scenarios: createScenarios(plan),
    roundsOf: (scenarios: readonly Scenario[]) =>
      Array.from({ length: Math.ceil(scenarios.length / WIDTH) }, (_, at) =>
        scenarios.slice(at * WIDTH, (at + 1) * WIDTH),
      ),
    run: (scenarios: readonly Scenario[]) => runScenarios(prepared, scenarios),
  };
};

interface Prepared {
  readonly recording: Recording;
  readonly truth: RecordedTruth;
  readonly plan: Plan;
}

const startRig = async (
  t: Lifespan,
  recording: Recording,
  truth: RecordedTruth,
  scenario: Scenario,
): Promise<Rig & { readonly connected: Promise<unknown> }> => {
  const node = await startRecordedNode(t, recording, truth.knownAt);
  const feeds = await Promise.all(Array.from({ length: scenario.feeds }, () => createFakeFeed()));
  for (const feed of feeds) {
    t.after(() => feed.close());
  }
  return { scenario, node, feeds, connected: Promise.all(feeds.map((feed) => feed.connected())) };
};

interface PlayEvents {
  readonly onReplace: (isReplaced: boolean) => void;
  /** Resolves when the block that must be shown is shown, or much too late. */
  readonly untilShown: () => Promise<void>;
}

/**
 * Sends frames and moves the node at their times. The block that must be shown is sealed, and the next one begins, once it is
 * shown: a busy machine is later than the recording.
 */
const play = async ({ scenario, node, feeds }: Rig, { onReplace, untilShown }: PlayEvents): Promise<void> => {
  let startMs = performance.now();
  const { mustShow = Number.POSITIVE_INFINITY } = scenario;
  const acts = [
    ...scenario.frames.map(({ atMs, feed, number, text }) => ({
      atMs,
      isAfterShown: number > mustShow,
      act: () => feeds[feed]?.send(text),
    })),
    ...scenario.node.map(({ atMs, act, number }) => ({
      atMs,
      isAfterShown: number >= mustShow,
      act: () => {
        switch (act) {
          case "seal":
          case "return":
            return node.setHead(number);
          case "replace":
            onReplace(true);
            return node.replaceHead();
          case "down":
            return node.setDown(true);
          case "up":
            return node.setDown(false);
        }
      },
    })),
    ...scenario.feedEvents.map(({ atMs, act }) => ({
      atMs,
      isAfterShown: false,
      act: async () => {
        for (const feed of feeds) {
          await (act === "disconnect" ? feed.disconnect() : act === "close" ? feed.close() : feed.open());
        }
      },
    })),
  ].toSorted((a, b) => a.atMs - b.atMs);
  for (const { atMs, isAfterShown, act } of acts) {
    await wait(Math.max(0, startMs + atMs - performance.now()));
    if (isAfterShown) {
      const waitedFromMs = performance.now();
      await untilShown();
      startMs += performance.now() - waitedFromMs;
    }
    await act();
  }
};

const runOne = async (
  rig: Rig,
  url: string,
  truth: RecordedTruth,
  sealed: readonly number[],
): Promise<ScenarioResult> => {
  const { scenario } = rig;
  let isReorganising = false;
  const watch = await watchPending(url, truth, () => isReorganising);
  const { mustShow } = scenario;
  let untilMs: number | undefined;
  const isShown = (): boolean => mustShow === undefined || watch.mostPending(mustShow) > 1;
  await play(rig, {
    onReplace: (isReplaced) => {
      isReorganising ||= isReplaced;
    },
    untilShown: async () => {
      untilMs ??= performance.now() + MAX_LATE_MS;
      while (!isShown() && performance.now() < untilMs) {
        await wait(CHECK_MS);
      }
    },
  });
  const last = sealed.at(-1) ?? 0;
  await until(async () => Number((await rpc(url, "eth_blockNumber")).body.result) >= last, "the last block is sealed");
  const found = await watch.end(sealed, scenario.isReorganised);
  const problems = isShown() ? found : [...found, `the messages of ${mustShow} were not shown`];
  return { name: scenario.name, problems, modes: [...watch.modes], samples: watch.samples };
};

/** Runs scenarios at the same time, each on a chain of one service. */
const runScenarios = (prepared: Prepared, scenarios: readonly Scenario[]): Promise<readonly ScenarioResult[]> =>
  withLifespan((t) => runTogether(t, prepared, scenarios));

const runTogether = async (
  t: Lifespan,
  { recording, truth, plan }: Prepared,
  scenarios: readonly Scenario[],
): Promise<readonly ScenarioResult[]> => {
  const rigs = await Promise.all(scenarios.map((scenario) => startRig(t, recording, truth, scenario)));
  const service = await createService(
    rigs.map(({ node, feeds }, at) => ({
      name: `chain${at}`,
      // Only the header of the first block is recorded, and its transactions do not match its root.
      verify: "cheap" as const,
      nodes: [{ url: node.url }],
      pending: { mode: "feed" as const, feeds: feeds.map(({ url }) => url) },
      blockTimeMs: 1_000,
      forks: "jovian",
    })),
  );
  t.after(() => service.close());
  const urlOf = (at: number) => (rigs.length === 1 ? service.url : `${service.url}/chain${at}`);
  await Promise.all(rigs.map(({ connected }) => connected));
  // The executor's thread starts with the service. The recording is sent after the thread has started.
  const [first] = plan.frames;
  for (const [at, { scenario, feeds }] of rigs.entries()) {
    const text = scenario.frames.find(({ feed }) => feed === 0)?.text ?? first?.text ?? "";
    await until(async () => {
      // The chain may not have its first head yet. Copies change nothing, and keep each connection.
      for (const feed of feeds) {
        feed.send(text);
      }
      const { body, headers } = await rpc(urlOf(at), "eth_getBlockByNumber", ["pending", false]);
      const { number } = body.result as { readonly number: string };
      return headers.get("x-forebay-pending") === "live" && Number(number) === first?.number;
    }, "the first message is verified");
  }
  const sealed = [...plan.heads.keys()];
  return Promise.all(rigs.map((rig, at) => runOne(rig, urlOf(at), truth, sealed)));
};
