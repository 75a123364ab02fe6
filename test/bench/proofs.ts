import { workerEntry } from "../../src/app/workerEntry.ts";
import type { Data } from "../../src/ethereum/hex.ts";
import { EMPTY_CODE_HASH } from "../../src/ethereum/keccak.ts";
import { checkBody, type ResponseChecks } from "../../src/verification/checkBody.ts";
import { VerifyThreads } from "../../src/verification/verifyThreads.ts";
import { createProvenState, slotOf } from "../support/builders/provenState.ts";
import { type BenchOptions, type BenchResult, median, round } from "./support/result.ts";
import { watchLoop } from "./support/watchLoop.ts";

const CLAIM =
  "Proofs in the verification thread cost at most a quarter more CPU than a loop over the verifier, and hold the main thread at most 2 ms";
const MIN_SHARE = 0.8;
const MAX_TURN_MS = 2;
const ACCOUNTS = 2_000;
const SLOTS = 5_000;
/** Slots of one response, as many as forebay asks for. */
const SLOTS_PER_RESPONSE = 250;
const RESPONSES = 40;
const ROUNDS = 9;
/** As many responses at once keep the thread busy. */
const CONCURRENT = 4;
const KEEP_ALIVE_MS = 1_000;
const CONTRACT: Data = `0x${"c0".repeat(20)}`;

interface ProofBody {
  readonly body: Uint8Array;
  readonly checks: ResponseChecks;
}

const createBodies = async (responses: number): Promise<readonly ProofBody[]> => {
  const slots = new Map(Array.from({ length: SLOTS }, (_, slot) => [slotOf(slot), BigInt(slot) * 1_000_003n + 1n]));
  const accounts = new Map(
    Array.from({ length: ACCOUNTS }, (_, at) => [
      `0x${(at + 1).toString(16).padStart(40, "0")}` as Data,
      { nonce: 1n, balance: BigInt(at) * 10n ** 15n, codeHash: EMPTY_CODE_HASH, slots: new Map() },
    ]),
  );
  const state = await createProvenState(
    new Map([...accounts, [CONTRACT, { nonce: 1n, balance: 0n, codeHash: EMPTY_CODE_HASH, slots }]]),
  );
  const encoder = new TextEncoder();
  const bodies: ProofBody[] = [];
  for (let at = 0; at < responses; at++) {
    const keys = Array.from({ length: SLOTS_PER_RESPONSE }, (_, slot) => slotOf((at * 97 + slot * 19) % SLOTS));
    const body = encoder.encode(JSON.stringify(await state.proofOf(CONTRACT, keys)));
    const request = { stateRoot: state.stateRoot, address: CONTRACT, keys };
    bodies.push({ body, checks: { kind: "proof", request } });
  }
  return bodies;
};

const requirePassed = (findings: ReturnType<typeof checkBody>): void => {
  if (findings.length !== 1 || findings[0]?.outcome !== "passed") {
    throw new Error("a proof was not verified");
  }
};

/** Returns the CPU time of the process since then in milliseconds, with that of garbage collection. */
const cpuMsSince = (start: NodeJS.CpuUsage): number => {
  const { user, system } = process.cpuUsage(start);
  return (user + system) / 1_000;
};

/** Returns the CPU time of the verifier alone, in milliseconds. */
const measureLoop = (bodies: readonly ProofBody[]): number => {
  const start = process.cpuUsage();
  for (const { body, checks } of bodies) {
    requirePassed(checkBody(body, checks));
  }
  return cpuMsSince(start);
};

/** Returns the CPU time of the process while threads verify, in milliseconds. */
const measureThread = async (threads: VerifyThreads, bodies: readonly ProofBody[]): Promise<number> => {
  const start = process.cpuUsage();
  const verifyEvery = async (first: number): Promise<void> => {
    for (let at = first; at < bodies.length; at += CONCURRENT) {
      const { body, checks } = bodies[at] as ProofBody;
      requirePassed(await threads.check(body, checks));
    }
  };
  await Promise.all(Array.from({ length: CONCURRENT }, (_, first) => verifyEvery(first)));
  return cpuMsSince(start);
};

/** Returns the CPU time of each turn of the main thread while proofs are verified, in milliseconds, the shortest first. */
const measureTurns = async (threads: VerifyThreads, bodies: readonly ProofBody[]): Promise<readonly number[]> => {
  const ending = new AbortController();
  const turns = watchLoop(ending.signal);
  await measureThread(threads, bodies);
  ending.abort();
  return (await turns).toSorted((a, b) => a - b);
};

/** Measures responses to eth_getProof of 250 slots: verified in a thread, and by a loop over the same function. `ours`: slots a second and core. */
export const bench = async ({ short }: BenchOptions): Promise<BenchResult> => {
  const bodies = await createBodies(short ? 8 : RESPONSES);
  const threads = new VerifyThreads(workerEntry("verification"));
  // An idle thread does not keep the process alive.
  const alive = setInterval(() => undefined, KEEP_ALIVE_MS);
  try {
    const loops: number[] = [];
    const threaded: number[] = [];
    measureLoop(bodies);
    await measureThread(threads, bodies);
    for (let at = 0; at < (short ? 3 : ROUNDS); at++) {
      loops.push(measureLoop(bodies));
      threaded.push(await measureThread(threads, bodies));
    }
    const turns = await measureTurns(threads, bodies);
    const p99 = turns[Math.floor(turns.length * 0.99)] ?? 0;
    const perSecond = (ms: number): number => Math.round((bodies.length * SLOTS_PER_RESPONSE * 1_000) / ms);
    const [ours, yardstick] = [perSecond(median(threaded)), perSecond(median(loops))];
    return {
      claim: CLAIM,
      ratio: round(Math.min(ours / yardstick / MIN_SHARE, MAX_TURN_MS / p99)),
      ours,
      yardstick,
      unit: "slots a second and core",
      share: round(ours / yardstick),
      turnP99Ms: round(p99, 2),
      longestTurnMs: round(turns.at(-1) ?? 0, 2),
      bytesPerResponse: bodies[0]?.body.length,
    };
  } finally {
    clearInterval(alive);
    await threads.close();
  }
};
