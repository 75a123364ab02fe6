import { setTimeout as sleep } from "node:timers/promises";
import { type LoadShape, measure, median, type Server } from "../compareServers.ts";
import { cpuSeconds } from "../cpuTime.ts";

/** CPU microseconds of one request at one size. */
export interface Point {
  readonly x: number;
  readonly forebay: number;
  /** A bare node:http server that sends the same bytes, if it was measured. */
  readonly bare?: number;
  /** CPU milliseconds a second without a request. */
  readonly idle?: number;
}

/** A measured curve. `docs/plots.ts` draws it. */
export interface Curve {
  readonly name: string;
  readonly points: readonly Point[];
}

export interface CurveOptions {
  readonly short: boolean;
  readonly times: Pick<LoadShape, "warmMs" | "measureMs">;
  readonly rounds: number;
}

/** The median of some rounds, in microseconds of CPU. A round without a response does not count. */
export const cpuOf = async (server: Server, shape: Omit<LoadShape, "warmMs" | "measureMs">, options: CurveOptions) => {
  const values: number[] = [];
  for (let round = 0; round < options.rounds; round++) {
    const { cpuMicroseconds } = await measure(server, { ...options.times, ...shape });
    if (Number.isFinite(cpuMicroseconds)) {
      values.push(cpuMicroseconds);
    }
  }
  return Number(median(values).toPrecision(4));
};

const IDLE_MS = 2_000;
const MAX_WINDOWS = 15;
/** The start is over once two windows differ by less than this share, or use next to nothing. */
const MAX_CHANGE = 0.25;
const LITTLE = 10;

/** Waits until the start is over. Returns the CPU milliseconds a second without a request. */
export const idleCpu = async ({ pids }: Server): Promise<number> => {
  const cpu = (): number => pids.reduce((sum, pid) => sum + cpuSeconds(pid), 0);
  let last = Number.POSITIVE_INFINITY;
  for (let window = 0; window < MAX_WINDOWS; window++) {
    const before = cpu();
    await sleep(IDLE_MS);
    const used = ((cpu() - before) * 1e6) / IDLE_MS;
    if (used < LITTLE || Math.abs(used - last) < last * MAX_CHANGE) {
      return Math.round(used);
    }
    last = used;
  }
  return Math.round(last);
};

export const sendCalls = async (url: string, calls: readonly (readonly [string, readonly unknown[]])[]) => {
  const body = JSON.stringify(calls.map(([method, params], id) => ({ jsonrpc: "2.0", id, method, params })));
  const response = await fetch(url, { method: "POST", headers: { "content-type": "application/json" }, body });
  await response.arrayBuffer();
};

export const callBody = (method: string, params: readonly unknown[]): string =>
  JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
