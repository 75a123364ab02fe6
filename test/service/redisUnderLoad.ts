import assert from "node:assert/strict";
import { test } from "node:test";
import { askAll, isHit } from "../support/clients/askAll.ts";
import { startLoad } from "../support/clients/load.ts";
import { metric } from "../support/clients/rpc.ts";
import { settled } from "../support/clients/settled.ts";
import { until } from "../support/clients/until.ts";
import { startRedis } from "../support/servers/redis.ts";
import type { RedisFault } from "../support/servers/redisFaults.ts";
import { createSealedChain, sharedCallsOf } from "../support/servers/sealedChain.ts";
import { createService } from "../support/servers/service.ts";

const REQUESTS = 150;
const AT_ONCE = 8;
/** Number of responses while Redis has the fault. */
const MEANWHILE = 600;

/** Tests that no request fails while the only cache is a Redis with these faults, one after the other. */
export const testRedisFaults = (title: string, faults: readonly RedisFault[]): void => {
  test(title, async (t) => {
    const chain = await createSealedChain();
    t.after(() => chain.devnet.close());
    const calls = sharedCallsOf(chain, REQUESTS);
    const truth = new Map((await askAll(chain.devnet.anvilUrl, calls)).map(({ call, result }) => [call, result]));
    const server = await startRedis(t);
    const service = await createService(
      { nodes: [{ url: chain.devnet.anvilUrl }], pending: { mode: "node" } },
      { cache: { redis: server.url, memoryBytes: 0 } },
    );
    t.after(() => service.close());
    const allHit = (what: string): Promise<void> =>
      until(async () => (await askAll(service.url, calls)).every((answer) => isHit(answer, "redis")), what);
    await settled(service);
    for (const fault of faults) {
      await t.test(`${fault.name} under load: no request fails, and cache hits return`, async () => {
        await allHit("Redis serves");
        const failures = await metric(service.opsUrl, "forebay_redis_errors_total");
        const load = startLoad(service.url, calls, AT_ONCE);
        await load.more(calls.length);
        await fault.begin(server);
        await load.more(MEANWHILE);
        await fault.end(server);
        await load.more(calls.length);
        for (const { call, result, text } of await load.stop()) {
          assert.equal(result, truth.get(call), `${JSON.stringify(call)}: ${text}`);
        }
        assert.ok((await metric(service.opsUrl, "forebay_redis_errors_total")) > failures, "nothing went wrong");
        await allHit("Redis serves again");
      });
    }
  });
};
