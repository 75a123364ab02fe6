import { createHash, randomBytes, randomInt } from "node:crypto";
import { Agent, request } from "undici";
import { createFakeNode } from "../support/fakes/fakeNode.ts";
import { createService } from "../support/servers/service.ts";

interface SeriesOptions {
  readonly seconds?: number | undefined;
}

const REQUESTS = 100_000;
const WARM_UP = 5_000;
const CONCURRENCY = 16;
const KEY = "the-one-that-is-known";

const pick = <T>(list: readonly [T, ...T[]]): T => list[randomInt(list.length)] ?? list[0];
const random = (): string => randomBytes(6).toString("hex");

const METHODS = ["eth_blockNumber", "eth_chainId", "eth_getBalance", "eth_getLogs", "admin_peers"] as const;
const method = (): string => (randomInt(4) === 0 ? pick(METHODS) : `${pick(["eth", "net", "x"])}_${random()}`);

/** Creates a request with random method, key, path, verb, address and query. */
const chance = (url: string) => {
  const path = pick([
    "/",
    "/chain",
    `/${random()}`,
    `/chain/${random()}`,
    `/chain/${KEY}`,
    `/chain/${KEY}/${random()}`,
  ]);
  const headers = {
    "content-type": pick(["application/json", "application/json", "application/json", `text/${random()}`]),
    "x-forwarded-for": `203.0.113.${randomInt(256)}`,
    "x-request-id": random(),
    "user-agent": random(),
    ...(randomInt(2) === 0 && { "x-api-key": pick([KEY, KEY, random()]) }),
  };
  const calls = Array.from({ length: randomInt(3) + 1 }, () => ({
    jsonrpc: "2.0",
    id: random(),
    method: method(),
    params: [],
  }));
  const isPost = randomInt(8) > 0;
  return {
    url: `${url}${path}${randomInt(2) === 0 ? "" : `?${random()}=${random()}`}`,
    options: {
      method: isPost ? ("POST" as const) : pick(["GET", "PUT", "DELETE", "OPTIONS"] as const),
      headers,
      ...(isPost && { body: JSON.stringify(calls.length === 1 ? calls[0] : calls) }),
    },
  };
};

/** Sends random methods, keys and paths. The number of time series must not grow. */
export const long = async ({ seconds }: SeriesOptions) => {
  const node = await createFakeNode();
  const service = await createService(
    { nodes: [{ url: node.url }] },
    {
      access: {
        keys: [{ name: "known", sha256: createHash("sha256").update(KEY).digest("hex") }],
        limitPerAddress: { calls: 2, seconds: 2 },
        deny: ["net_*"],
        trustedProxies: ["127.0.0.1"],
      },
    },
  );
  const dispatcher = new Agent({ connections: CONCURRENCY });
  let endMs = Number.POSITIVE_INFINITY;
  const statuses: Record<number, number> = {};
  let sent = 0;

  const series = async (): Promise<ReadonlySet<string>> => {
    const text = await (await fetch(`${service.opsUrl}/metrics`)).text();
    const lines = text.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
    return new Set(lines.map((line) => line.slice(0, line.lastIndexOf(" "))));
  };
  const run = async (until: number): Promise<void> => {
    const work = async (): Promise<void> => {
      while (sent < until && performance.now() < endMs) {
        sent++;
        const { url, options } = chance(service.url);
        const { statusCode, body } = await request(url, { ...options, dispatcher });
        await body.dump();
        statuses[statusCode] = (statuses[statusCode] ?? 0) + 1;
      }
    };
    await Promise.all(Array.from({ length: CONCURRENCY }, work));
  };

  // A known name has a series after its first use. On a busy machine this takes longer than a short run.
  await run(WARM_UP);
  endMs = seconds === undefined ? endMs : performance.now() + seconds * 1000;
  const before = await series();
  await run(REQUESTS);
  const after = await series();
  await dispatcher.close();
  await service.close();
  await node.close();
  const added = [...after].filter((each) => !before.has(each));
  return { name: "series", passed: added.length === 0 && sent > WARM_UP, sent, series: after.size, added, statuses };
};
