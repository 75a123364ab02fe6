import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { askAll, isHit } from "../support/clients/askAll.ts";
import { startLoad } from "../support/clients/load.ts";
import { metric } from "../support/clients/rpc.ts";
import { settled } from "../support/clients/settled.ts";
import { until } from "../support/clients/until.ts";
import { type RedisServer, startRedis } from "../support/servers/redis.ts";
import { redisFaults } from "../support/servers/redisFaults.ts";
import { type ChainCall, createSealedChain, type SealedChain, sharedCallsOf } from "../support/servers/sealedChain.ts";
import { createService, type Service } from "../support/servers/service.ts";

const REQUESTS = 150;
const AT_ONCE = 8;
/** Number of responses while Redis has the fault. */
const MEANWHILE = 600;

let chain: SealedChain;
let calls: readonly ChainCall[];
let truth: ReadonlyMap<ChainCall, string | undefined>;
let server: RedisServer;
let service: Service;

before(async () => {
  chain = await createSealedChain();
  calls = sharedCallsOf(chain, REQUESTS);
  truth = new Map((await askAll(chain.devnet.anvilUrl, calls)).map(({ call, result }) => [call, result]));
});
after(async () => {
  await service?.close();
  await chain?.devnet.close();
});

const allHit = (what: string): Promise<void> =>
  until(async () => (await askAll(service.url, calls)).every((answer) => isHit(answer, "redis")), what);

test("memory off, Redis alone", async (t) => {
  server = await startRedis(t);
  service = await createService(
    { nodes: [{ url: chain.devnet.anvilUrl }], pending: { mode: "node" } },
    { cache: { redis: server.url, memoryBytes: 0 } },
  );
  await settled(service);
  for (const fault of redisFaults) {
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
