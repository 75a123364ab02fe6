import { setTimeout as sleep } from "node:timers/promises";
import { metric, rpc } from "../support/clients/rpc.ts";
import { createFakeChain } from "../support/fakes/fakeChain.ts";
import { createFakeNode, type FakeNode, type Faults } from "../support/fakes/fakeNode.ts";
import { createService, type Service } from "../support/servers/service.ts";
import type { LongOptions } from "./support/longOptions.ts";
import { sendAtRate } from "./support/openLoad.ts";

/** The report of a fault to the operator: the metric of the alert, the least value, and the log line. */
interface Report {
  readonly metric: string;
  readonly atLeast: number;
  readonly log: string;
  /** The fault needs this time to be reported. A shorter run does not ask for it. */
  readonly afterMs?: number;
}

interface ProviderFault {
  readonly faults: Faults;
  readonly report?: Report;
  /** No read may take longer. */
  readonly maxStallMs?: number;
}

const REJECTING: Report = {
  metric: "forebay_upstream_rejecting",
  atLeast: 1,
  log: "node is not used: it rejects requests",
};
const BROKEN: Report = {
  metric: "forebay_upstream_breaker_open",
  atLeast: 1,
  log: "node is not used: it failed too often",
};
const LAG_BLOCKS = 40;
const SLOW_MS = 1_500;

/** The ways in which providers fail. */
const FAULTS: Readonly<Record<string, ProviderFault>> = {
  // First: after slow responses, hedges are late.
  hanging: {
    faults: { answer: "hang" },
    maxStallMs: 1_500,
    report: {
      metric: "forebay_upstream_hung",
      atLeast: 1,
      log: "node hangs: it responds neither to requests nor to a probe",
      afterMs: 5_000,
    },
  },
  quota: { faults: { error: { code: -32_000, message: "daily request limit reached" } }, report: REJECTING },
  unknown: { faults: { error: { code: -32_099, message: "something that nobody has ever seen" } } },
  rateLimit: { faults: { answer: 429 }, report: { ...REJECTING, afterMs: 5_000 } },
  // After the fault before, the node gets few reads at first. The same is true of `half` and `dead`.
  revoked: { faults: { answer: 401 }, report: { ...REJECTING, afterMs: 4_000 } },
  slow: { faults: { delayMs: SLOW_MS } },
  behind: {
    faults: { lag: LAG_BLOCKS },
    report: {
      metric: "forebay_upstream_lag_seconds",
      atLeast: 30,
      log: "node is behind the others: it gets reads of old blocks only",
      afterMs: 20_000,
    },
  },
  half: { faults: { answer: "half" }, report: { ...BROKEN, afterMs: 4_000 } },
  html: { faults: { answer: 200 }, report: BROKEN },
  dead: { faults: { answer: "reset" }, report: { ...BROKEN, afterMs: 4_000 } },
};

const WHOLE_MS = 60_000;
/** In a shorter fault its report and the recovery from the last one do not fit. */
const MIN_FAULT_MS = 2_500;
const CALLS_PER_SECOND = 40;
const BLOCK_MS = 1_000;
const HEIGHT = 200;
const WATCH_MS = 250;
const MAX_REQUEST_RATIO = 1.2;
/** The requests that discover a fault are few in a phase of this length. A shorter run does not compare requests. */
const MIN_RATIO_MS = 10_000;
const MAX_SHOWN = 5;
/** Both nodes work for this share of a phase, before the fault. */
const HEALTHY_SHARE = 0.25;

const addressOf = (at: number): string => `0x${at.toString(16).padStart(40, "0")}`;

/** Reads that no cache answers. */
const READS: readonly ((at: number) => readonly [method: string, params: readonly unknown[]])[] = [
  (at) => ["eth_getBalance", [addressOf(at), "latest"]],
  (at) => ["eth_call", [{ to: addressOf(at) }, "latest"]],
  (at) => ["eth_getStorageAt", [addressOf(at), "0x0", "0x10"]],
  (at) => ["eth_getLogs", [{ address: addressOf(at), fromBlock: "0x10", toBlock: "0x20" }]],
];

interface Load {
  calls: number;
  longestMs: number;
  /** The method of that call. */
  longest: string;
  readonly failures: string[];
}

/** Sends one of the reads, and notes its failure, or its time if it took the longest. */
const callOnce = async (url: string, load: Load, at: number): Promise<void> => {
  const [method, params] = READS[at % READS.length]?.(at) ?? ["eth_chainId", []];
  load.calls++;
  const startedMs = performance.now();
  const answer = await rpc(url, method, params).catch(String);
  const ms = performance.now() - startedMs;
  if (ms > load.longestMs) {
    Object.assign(load, { longestMs: ms, longest: method });
  }
  if (typeof answer === "string" || answer.status !== 200 || answer.body.result === undefined) {
    load.failures.push(`${method} ${typeof answer === "string" ? answer : answer.text.slice(0, 200)}`);
  }
};

/** Whether the report of a fault appears while it lasts. */
const watchReport = async (
  service: Service,
  node: string,
  { report, lines }: { readonly report: Report; readonly lines: readonly string[] },
  signal: AbortSignal,
): Promise<boolean> => {
  let isCounted = false;
  while (!signal.aborted) {
    isCounted ||= (await metric(service.opsUrl, report.metric, `node="${node}"`)) >= report.atLeast;
    if (isCounted && lines.includes(report.log)) {
      return true;
    }
    await sleep(WATCH_MS);
  }
  return false;
};

const countOf = (nodes: readonly FakeNode[]): number => nodes.reduce((sum, { requests }) => sum + requests.length, 0);

const OFF: Faults = { answer: undefined, error: undefined, lag: undefined, delayMs: undefined };

/** One service in front of two nodes. In turn, one of them fails, and is back. */
const runProviders = async (phaseMs: number, isPushed: boolean) => {
  const chain = createFakeChain({
    height: HEIGHT,
    secondsPerBlock: BLOCK_MS / 1_000,
    startSeconds: Math.floor(Date.now() / 1_000 - (HEIGHT * BLOCK_MS) / 1_000),
  });
  const handlers = { eth_call: () => "0x" };
  const nodes = [await createFakeNode({ chain, handlers }), await createFakeNode({ chain, handlers })] as const;
  const mining = setInterval(() => chain.mine(), BLOCK_MS);
  const service = await createService({
    verify: "cheap",
    nodes: nodes.map(({ url, wsUrl }, at) => ({ name: `node${at}`, url, ...(isPushed && { wsUrl }) })),
  });
  const lines: string[] = [];
  const { log } = service.telemetry;
  log.warn = (_fields: unknown, message?: string) => {
    lines.push(message ?? "");
  };
  const load: Load = { calls: 0, longestMs: 0, longest: "", failures: [] };
  const stopping = new AbortController();
  const first = isPushed ? 1e6 : 2e6;
  const calling = sendAtRate(
    CALLS_PER_SECOND,
    () => stopping.signal.aborted,
    (at) => callOnce(service.url, load, first + at),
  );
  await sleep(phaseMs / 2);
  const healthyFrom = countOf(nodes);
  await sleep(phaseMs);
  const healthy = countOf(nodes) - healthyFrom;

  const phases: Record<string, unknown> = {};
  const problems: string[] = [];
  let faulty = 0;
  for (const [at, [name, { faults, report, maxStallMs = Number.POSITIVE_INFINITY }]] of Object.entries(
    FAULTS,
  ).entries()) {
    const node = nodes[at % 2 === 0 ? 0 : 1];
    await sleep(phaseMs * HEALTHY_SHARE);
    lines.length = 0;
    load.longestMs = 0;
    const before = { failures: load.failures.length, requests: countOf(nodes) };
    Object.assign(node.faults, faults);
    const isAsked = report !== undefined && phaseMs >= (report.afterMs ?? 0);
    const ending = new AbortController();
    const watching = isAsked && watchReport(service, `node${at % 2}`, { report, lines }, ending.signal);
    await sleep(phaseMs);
    ending.abort();
    const isReported = await watching;
    Object.assign(node.faults, OFF);
    node.release();
    const requests = countOf(nodes) - before.requests;
    faulty += requests;
    const failed = load.failures.length - before.failures;
    const longestMs = Math.round(load.longestMs);
    phases[name] = {
      failed,
      longestMs,
      longest: load.longest,
      ratio: Number((requests / healthy).toFixed(2)),
      ...(isAsked && { reported: isReported }),
    };
    if (failed > 0 || (isAsked && !isReported) || longestMs > maxStallMs) {
      problems.push(name);
    }
  }
  stopping.abort();
  await calling;
  clearInterval(mining);
  await service.close();
  await Promise.all(nodes.map((node) => node.close()));
  const ratio = Number((faulty / (healthy * Object.keys(FAULTS).length)).toFixed(2));
  const { calls, failures } = load;
  return {
    calls,
    failed: failures.length,
    ratio,
    phases,
    problems,
    failures: failures.slice(0, MAX_SHOWN),
  };
};

/**
 * One of two providers fails in each way for a minute, and is back. Clients send 40 calls a second. Heads are polled, or pushed.
 * No call fails, and a node that hangs delays none by more than 1.5 s. The fault is reported by the metric of its alert and by a log line. The nodes get at most 1.2 times the requests
 * of the time without a fault.
 */
export const long = async ({ seconds }: LongOptions) => {
  const parts = Object.keys(FAULTS).length * (1 + HEALTHY_SHARE) + 1.5;
  const phaseMs = seconds === undefined ? WHOLE_MS : Math.max(MIN_FAULT_MS, (seconds * 1_000) / parts);
  const [polled, pushed] = await Promise.all([runProviders(phaseMs, false), runProviders(phaseMs, true)]);
  const runs = [polled, pushed];
  return {
    name: "providers",
    passed: runs.every(
      ({ failed, problems, ratio }) =>
        failed === 0 && problems.length === 0 && (phaseMs < MIN_RATIO_MS || ratio <= MAX_REQUEST_RATIO),
    ),
    polled,
    pushed,
  };
};
