import { monitorEventLoopDelay } from "node:perf_hooks";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { fixedForks } from "../../src/ethereum/chainForks.ts";
import { type Address, formatData, ZERO_HASH } from "../../src/ethereum/hex.ts";
import { createSimulator, type Simulator } from "../../src/simulation/simulator.ts";
import { CALLEE, type LoopProgram, loopPrograms, SLOW_LOOP } from "../fuzz/evm/loopPrograms.ts";
import { PARENT } from "../support/builders/parentBlock.ts";
import { createContext } from "../support/builders/request.ts";
import { plainSource } from "../support/fakes/plainSource.ts";
import { SIMULATOR_OPTIONS } from "../support/fakes/simulationRig.ts";
import { createWorkers } from "../support/servers/evmWorkers.ts";
import type { LongOptions } from "./support/longOptions.ts";

const TIMEOUT_MS = 5_000;
const SHORT_MS = 200;
/** Time after the deadline to end the thread and send the response. */
const SLACK_MS = 200;
/** Also to read a large payload. */
const PAYLOAD_SLACK_MS = 500;
const RESOLUTION_MS = 10;
/** Of the delays of the main thread's timers, which are those of other requests. */
const MAX_P99_MS = 50;
/** Enough for the start of a thread on a loaded machine. */
const START_MS = 60_000;
const MAX_GROWTH_MIB = 20;
/** Measurements of memory: one alone varies by 15 MiB. */
const SAMPLES = 6;
const SLOWEST = 8;
const MIB = 1024 * 1024;

const TARGET: Address = `0x${"11".repeat(20)}`;
const callee: Address = `0x${CALLEE.toString(16).padStart(40, "0")}`;
const block = { ...PARENT, hash: ZERO_HASH, gasLimit: 100_000_000n };

const workers = createWorkers();
const simulatorOf = (timeoutMs: number): Simulator =>
  createSimulator({
    ...SIMULATOR_OPTIONS,
    workers,
    forks: () => fixedForks(1n, "osaka"),
    nativesAt: () => [],
    timeoutMs,
  });
const simulator = simulatorOf(TIMEOUT_MS);
const impatient = simulatorOf(SHORT_MS);
const lenient = simulatorOf(START_MS);

const payloadOf = ({ code, input, callee: called }: Omit<LoopProgram, "name">): unknown => [
  {
    blockStateCalls: [
      {
        stateOverrides: { [TARGET]: { code: formatData(code) }, [callee]: { code: formatData(called) } },
        calls: [{ to: TARGET, input: formatData(input) }],
      },
    ],
  },
];

const PAYLOADS: readonly (readonly [name: string, payload: unknown])[] = [
  ["256 blocks of 5,000 calls", [{ blockStateCalls: Array(256).fill({ calls: Array(5_000).fill({}) }) }]],
  ["256 blocks of 39 calls", [{ blockStateCalls: Array(256).fill({ calls: Array(39).fill({ to: TARGET }) }) }]],
  ["5 MiB of calldata", [{ blockStateCalls: [{ calls: [{ to: TARGET, input: `0x${"00".repeat(2_600_000)}` }] }] }]],
];

const simulate = async (on: Simulator, payload: unknown): Promise<string> => {
  const source = plainSource(`state ${performance.now()}`, new Map());
  const caller = createContext();
  try {
    await on.simulate(new TextEncoder().encode(JSON.stringify(payload)), { block, source }, caller);
    return "result";
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
};

const NOTHING = new Uint8Array(0);
/** Waits for a thread: a run that was ended by its deadline has ended its thread too. */
const ensureThread = async (): Promise<void> => {
  const ended = await simulate(lenient, payloadOf({ code: NOTHING, callee: NOTHING, input: NOTHING }));
  if (ended !== "result") {
    throw new Error(`an empty simulation failed: ${ended}`);
  }
};

interface Timed {
  readonly name: string;
  readonly ms: number;
  readonly ended: string;
}

const time = async (on: Simulator, name: string, payload: unknown): Promise<Timed> => {
  await ensureThread();
  const startMs = performance.now();
  const ended = await simulate(on, payload);
  return { name, ms: Math.round(performance.now() - startMs), ended };
};

const isDeadline = ({ ended }: Timed): boolean => ended.startsWith("execution aborted");
const slowest = (times: readonly Timed[]): readonly Timed[] => times.toSorted((a, b) => b.ms - a.ms).slice(0, SLOWEST);

/**
 * Resident memory in bytes, with a new thread, because a used one may hold a larger module. The smallest of several measurements,
 * so that the growth of the process by its first threads counts as before.
 */
const residentBytes = async (): Promise<number> => {
  const slow = loopPrograms().find(({ name }) => name === SLOW_LOOP);
  const samples: number[] = [];
  for (let at = 0; at < SAMPLES; at++) {
    if (slow === undefined || (await time(impatient, slow.name, payloadOf(slow))).ended === "result") {
      throw new Error("the thread was not replaced");
    }
    await ensureThread();
    setFlagsFromString("--expose-gc");
    runInNewContext("gc")();
    samples.push(process.memoryUsage().rss);
  }
  return Math.min(...samples);
};

/**
 * Hostile simulations: large payloads, and loops of 50M gas, one for each opcode and each precompile. Each must end by its result or by
 * its deadline, and the main thread stays free for others. With `seconds`, the run ends after that time, and memory is not checked.
 */
export const long = async ({ seconds = Number.POSITIVE_INFINITY }: LongOptions) => {
  const programs = loopPrograms();
  const endMs = performance.now() + seconds * 1_000;
  const delays = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  delays.enable();
  const large: Timed[] = [];
  for (const [name, payload] of PAYLOADS) {
    large.push(await time(simulator, name, payload));
  }
  const beforeBytes = await residentBytes();
  const patient: Timed[] = [];
  const short: Timed[] = [];
  for (const program of programs) {
    if (performance.now() > endMs) {
      break;
    }
    const payload = payloadOf(program);
    patient.push(await time(simulator, program.name, payload));
    short.push(await time(impatient, program.name, payload));
  }
  const growthMiB = Math.round(((await residentBytes()) - beforeBytes) / MIB);
  await workers.close();
  const othersP99Ms = Math.round(delays.percentile(99) / 1e6) - RESOLUTION_MS;
  delays.disable();
  const failed = [...patient, ...short].filter((timed) => timed.ended !== "result" && !isDeadline(timed));
  const late = [
    ...large.filter(({ ms }) => ms > TIMEOUT_MS + PAYLOAD_SLACK_MS),
    ...patient.filter(({ ms }) => ms > TIMEOUT_MS + SLACK_MS),
    ...short.filter(({ ms }) => ms > SHORT_MS + SLACK_MS),
  ];
  const isWhole = patient.length === programs.length;
  return {
    passed:
      failed.length === 0 &&
      late.length === 0 &&
      (!isWhole || (growthMiB <= MAX_GROWTH_MIB && othersP99Ms <= MAX_P99_MS)),
    ...{ large, othersP99Ms },
    loops: patient.length,
    deadlines: patient.filter(isDeadline).length,
    shortDeadlines: short.filter(isDeadline).length,
    growthMiB,
    failed,
    late,
    slowest: slowest(patient),
    slowestOfShort: slowest(short),
  };
};
