import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { z } from "zod";
import { until } from "../clients/until.ts";
import { createFakeNode } from "../fakes/fakeNode.ts";
import { startCommand } from "./command.ts";
import { createService } from "./service.ts";

/** The keys of clients, in the order of all results here. */
const KEYS = ["wallet", "indexer"];
const PRICE_OF_BALANCE = 20;

const amounts = z.object({ calls: z.number(), units: z.number() });
const report = z.object({
  total: amounts,
  daysFrom: z.string(),
  days: z.array(
    z.object({
      day: z.iso.date(),
      since: z.iso.datetime(),
      keys: z.array(amounts.extend({ key: z.string() })),
      total: amounts,
      bill: amounts,
    }),
  ),
});

interface Options {
  readonly cache?: { readonly redis: string };
  readonly dataDir?: string;
  /** The budget of the first key. */
  readonly unitsPerDay?: number;
}

/** Returns a data folder that does not exist yet. It ends with the test. */
export const createUsageFolder = async (t: TestContext): Promise<string> => {
  const parent = await mkdtemp(join(tmpdir(), "forebay-usage-"));
  t.after(() => rm(parent, { recursive: true, force: true }));
  return join(parent, "data");
};

/** Returns functions that start replicas in front of one node: in this process, or as their command does. */
export const createReplicas = async (t: TestContext) => {
  const node = await createFakeNode();
  t.after(() => node.close());
  const chain = {
    nodes: [{ url: node.url }],
    pending: { mode: "node" as const },
    state: { follow: false as const },
    upstream: { hedge: { maxShare: 0 } },
  };
  const rest = ({ cache, dataDir, unitsPerDay }: Options) => ({
    access: {
      keys: KEYS.map((name, index) => ({
        name,
        sha256: createHash("sha256").update(name).digest("hex"),
        ...(unitsPerDay !== undefined && index === 0 && { limit: { unitsPerDay } }),
      })),
    },
    ...(cache && { cache }),
    ...(dataDir !== undefined && { server: { dataDir } }),
  });
  return {
    start: async (options: Options) => {
      const service = await createService(chain, rest(options));
      t.after(() => service.close());
      return service;
    },
    startAsCommand: (options: Options) => startCommand(t, { chains: [{ name: "chain", ...chain }], ...rest(options) }),
  };
};

const answers = z.array(
  z.object({
    result: z.string().optional(),
    error: z
      .object({ code: z.number(), message: z.string(), data: z.record(z.string(), z.unknown()).optional() })
      .optional(),
  }),
);

interface Replica {
  readonly url: string;
  readonly opsUrl: string;
}

/** Sends calls of one method, each with a price of 20 units. */
export const callWithKey = async ({ url }: Replica, key: string, times: number): Promise<void> => {
  for (let count = 0; count < times; count++) {
    const response = await fetch(url, {
      method: "POST",
      headers: { "content-type": "application/json", "x-api-key": key },
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "eth_getBalance", params: [`0x${"0".repeat(40)}`, "0x1"] }),
    });
    assert.equal(response.status, 200);
    await response.text();
  }
};

/** Sends calls in one body, as a batch if they are several. Each reads a balance that no other call has read, for 20 units. */
export const readNewBalances = async ({ url }: Replica, key: string, times = 1) => {
  const calls = Array.from({ length: times }, (_, id) => ({
    ...{ jsonrpc: "2.0", id, method: "eth_getBalance" },
    params: [`0x${randomBytes(20).toString("hex")}`, "0x1"],
  }));
  const response = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json", "x-api-key": key },
    body: JSON.stringify(times === 1 ? calls[0] : calls),
  });
  const { status, headers } = response;
  const body: unknown = await response.json();
  return { status, headers, answers: answers.parse(Array.isArray(body) ? body : [body]) };
};

/** Reads /usage with a query. */
export const askUsage = ({ opsUrl }: Replica, query: string) => fetch(`${opsUrl}/usage${query}`);

/** Reads /usage with days. Asks again while the status is 503: the store is not connected yet, or slow. */
const readReport = async (replica: Replica, days: number) => {
  let text = "";
  await until(async () => {
    const response = await askUsage(replica, `?days=${days}`);
    text = await response.text();
    assert.ok([200, 503].includes(response.status), text);
    return response.status === 200;
  }, "the usage of days can be read");
  return report.parse(JSON.parse(text));
};

/** Returns where the days come from, and the calls of all days by key. A test may run at midnight. */
const readDays = async (replica: Replica) => {
  const { daysFrom, days } = await readReport(replica, 2);
  const calls = new Map<string, number>();
  for (const day of days) {
    assert.ok(Date.parse(day.since) >= Date.parse(day.day) && Date.parse(day.since) <= Date.now());
    for (const { key, calls: ofDay, units } of day.keys) {
      assert.equal(units, ofDay * PRICE_OF_BALANCE);
      calls.set(key, (calls.get(key) ?? 0) + ofDay);
    }
  }
  return { daysFrom, calls: KEYS.map((key) => calls.get(key) ?? 0), bill: days.map((day) => day.bill.calls) };
};

/** Returns the calls of all clients since the start of a replica. */
export const readTotal = async (replica: Replica): Promise<number> => (await readReport(replica, 1)).total.calls;

/** Waits until the days have these calls by key, from this store. Rejects if they have more. */
export const untilCalls = async (replica: Replica, from: string, expected: readonly number[]): Promise<void> => {
  await until(async () => {
    const { daysFrom, calls } = await readDays(replica);
    assert.equal(daysFrom, from);
    assert.ok(
      calls.every((count, index) => count <= (expected[index] ?? 0)),
      `counted twice: ${calls}`,
    );
    return calls.every((count, index) => count === expected[index]);
  }, `the days have ${expected} calls`);
};
