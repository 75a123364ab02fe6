import { once } from "node:events";
import { createServer } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { bls12_381 } from "@noble/curves/bls12-381.js";
import { p256 } from "@noble/curves/nist.js";
import secp256k1 from "secp256k1";
import { Agent, request } from "undici";
import { workerEntry } from "../../src/app/workerEntry.ts";
import { fixedForks } from "../../src/ethereum/chainForks.ts";
import { ZERO_HASH } from "../../src/ethereum/hex.ts";
import { EvmWorkers } from "../../src/runs/evmWorkers.ts";
import { createSimulator } from "../../src/simulation/simulator.ts";
import { PARENT } from "../support/builders/parentBlock.ts";
import { createContext } from "../support/builders/request.ts";
import { plainSource } from "../support/fakes/plainSource.ts";
import { SIMULATOR_OPTIONS } from "../support/fakes/simulationRig.ts";

/** Hostile payloads, one after another. Each must end by its deadline, and other requests must stay fast. */
const TIMEOUT_MS = 5_000;
/** Time after the deadline to end the thread and send the response. */
const SLACK_MS = 500;
const MAX_P99_MS = 50;
const PAUSE_MS = 10;
const MAX_GROWTH_MIB = 100;

const workers = new EvmWorkers({ entry: workerEntry("simulation"), size: 1 });
const simulator = createSimulator({
  ...SIMULATOR_OPTIONS,
  workers,
  forks: () => fixedForks(1n, "osaka"),
  nativesAt: () => [],
  timeoutMs: TIMEOUT_MS,
});

const block = { ...PARENT, hash: ZERO_HASH, gasLimit: 100_000_000n };

const TARGET = `0x${"11".repeat(20)}`;
const word = (value: bigint | number): string => value.toString(16).padStart(64, "0");

/** Code that copies its calldata into memory and calls a precompile with it until the gas is used up. */
const hammer = (precompile: number): string =>
  `365f5f375b5f5f365f61${precompile.toString(16).padStart(4, "0")}5afa50600456`;
const HASHES = "5b6110005f20505f56";
/** Code that repeats mstore(msize, 1) without end. */
const GROWS = "5b600159525f56";
/** Code that calls itself with all its gas without end. */
const RECURSES = "5b5f5f5f5f5f305af1505f56";

const call = (code: string, input = ""): unknown => [
  {
    blockStateCalls: [
      { stateOverrides: { [TARGET]: { code: `0x${code}` } }, calls: [{ to: TARGET, input: `0x${input}` }] },
    ],
  },
];

const blsPoint = (): string => {
  const { x, y } = bls12_381.G1.Point.BASE.toAffine();
  return [x, y].map((part) => part.toString(16).padStart(128, "0")).join("");
};
const p256Input = (): string => {
  const secret = p256.utils.randomSecretKey();
  const digest = new Uint8Array(32).fill(7);
  const signature = p256.sign(digest, secret, { prehash: false, lowS: false });
  return digest.toHex() + signature.toHex() + p256.getPublicKey(secret, false).subarray(1).toHex();
};
const recoverInput = (): string => {
  const digest = new Uint8Array(32).fill(9);
  const { signature, recid } = secp256k1.ecdsaSign(digest, new Uint8Array(32).fill(1));
  return digest.toHex() + word(27 + recid) + signature.toHex();
};
const modexpInput = (): string =>
  word(512) + word(512) + word(512) + "ff".repeat(512) + "fe".repeat(512) + "fd".repeat(512);

const PAYLOADS: readonly (readonly [string, unknown])[] = [
  ["BLS G1 addition", call(hammer(0x0b), blsPoint() + blsPoint())],
  ["P256VERIFY", call(hammer(0x100), p256Input())],
  ["ecrecover", call(hammer(0x01), recoverInput())],
  ["modexp", call(hammer(0x05), modexpInput())],
  ["keccak of 4 KiB", call(HASHES)],
  ["memory growth", call(GROWS)],
  ["calls as deep as they go", call(RECURSES)],
  ["256 blocks of 5,000 calls", [{ blockStateCalls: Array(256).fill({ calls: Array(5_000).fill({}) }) }]],
  ["256 blocks of 39 calls", [{ blockStateCalls: Array(256).fill({ calls: Array(39).fill({ to: TARGET }) }) }]],
  ["5 MiB of calldata", call("00", "00".repeat(2_600_000))],
];

/** Sends other requests to this process, which its main thread answers. */
const server = createServer((_, response) => response.end("{}"));
server.listen(0, "127.0.0.1");
await once(server, "listening");
const address = server.address();
if (address === null || typeof address === "string") {
  throw new Error("no port");
}
const url = `http://127.0.0.1:${address.port}`;
const dispatcher = new Agent({ connections: 1 });

const measureOthers = async (until: Promise<unknown>): Promise<number[]> => {
  let isDone = false;
  until.finally(() => {
    isDone = true;
  });
  const times: number[] = [];
  while (!isDone) {
    const start = performance.now();
    const { body } = await request(url, { dispatcher });
    await body.text();
    times.push(performance.now() - start);
    await sleep(PAUSE_MS);
  }
  return times;
};

const percentile = (times: readonly number[], share: number): number =>
  times.toSorted((a, b) => a - b)[Math.floor(times.length * share)] ?? 0;

const simulate = async (payload: unknown): Promise<string> => {
  const paramsText = new TextEncoder().encode(JSON.stringify(payload));
  const source = plainSource(`state ${performance.now()}`, new Map());
  try {
    const { body } = await simulator.simulate(paramsText, { block, source }, createContext());
    return `answered, ${(body as Uint8Array).length} bytes`;
  } catch (error) {
    return `error: ${error instanceof Error ? error.message : error}`;
  }
};

/** With `seconds`, the payloads repeat until the time is over, and memory is not checked. */
export const long = async ({ seconds = Number.POSITIVE_INFINITY }: { readonly seconds: number | undefined }) => {
  await simulate([{ blockStateCalls: [{}] }]);
  const endMs = performance.now() + seconds * 1_000;
  const all: number[] = [];
  const late: string[] = [];
  const payloads: Record<string, unknown>[] = [];
  /** Memory after the first round, in which threads and caches reach their size. Later rounds are compared with it. */
  let before = 0;
  for (const [name, payload] of [...PAYLOADS, ...PAYLOADS]) {
    if (performance.now() > endMs) {
      break;
    }
    if (name === PAYLOADS[0]?.[0]) {
      before = process.memoryUsage().rss;
    }
    const start = performance.now();
    const run = simulate(payload);
    const times = await measureOthers(run);
    const ms = performance.now() - start;
    all.push(...times);
    if (ms > TIMEOUT_MS + SLACK_MS) {
      late.push(name);
    }
    payloads.push({ name, ms: Math.round(ms), said: await run, othersP99Ms: percentile(times, 0.99) });
  }
  const growthMiB = (process.memoryUsage().rss - before) / 1024 / 1024;
  const othersP99Ms = percentile(all, 0.99);
  server.close();
  await dispatcher.destroy();
  await workers.close();
  const isWhole = payloads.length === 2 * PAYLOADS.length;
  const passed = late.length === 0 && (!isWhole || (othersP99Ms <= MAX_P99_MS && growthMiB <= MAX_GROWTH_MIB));
  return { passed, othersP99Ms, maxP99Ms: MAX_P99_MS, growthMiB, late, payloads };
};
