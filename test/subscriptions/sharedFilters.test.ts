import assert from "node:assert/strict";
import { test } from "node:test";
import type { RunScript } from "../../src/core/sharedValues.ts";
import { CREATE_FILTER, REPLACE_FILTER } from "../../src/subscriptions/sharedFilters.ts";
import { ANY, range, readLogs } from "../logs/askLogs.ts";
import { type FakeBlock, plainScan } from "../logs/fakeChain.ts";
import { createMemoryStore } from "../logs/memoryStore.ts";
import { at, chain, createReplica, fork, missing, query } from "./filterReplica.ts";
import { startRedisFilters } from "./redisFilters.ts";

test("concurrent polls of one filter at two replicas return each log once, also across a reorganisation", async (t) => {
  const shared = await startRedisFilters(t);
  const cache = createMemoryStore();
  const replicas = [createReplica({ shared }, cache), createReplica({ shared }, cache)];
  const [first] = replicas;
  assert.ok(first);
  const id = await first.filters.newLogFilter(query(), at(chain, 44));
  const seen: object[] = [];
  const pollAll = async (blocks: readonly FakeBlock[], latest: number) => {
    const polls = replicas.flatMap(({ node, filters }, index) => {
      node.options.chain = blocks;
      // At every second block, one of the replicas is behind.
      return [0, 1].map(() => filters.changes(id, at(blocks, latest - (latest % 2) * index)));
    });
    for (const answer of await Promise.all(polls)) {
      seen.push(...((await readLogs(answer)) as object[]));
    }
  };
  for (let latest = 45; latest <= 51; latest++) {
    await pollAll(chain, latest);
  }
  for (let latest = 53; latest <= 59; latest++) {
    await pollAll(fork, latest);
  }
  const gone = plainScan(chain, ANY, range(48, 51)).map((log) => ({ ...log, removed: true }));
  const expected = [...plainScan(chain, ANY, range(45, 51)), ...gone, ...plainScan(fork, ANY, range(48, 59))];
  const sorted = (list: readonly object[]) => list.map((log) => JSON.stringify(log)).sort();
  assert.deepEqual(sorted(seen), sorted(expected));
});

test("a step that Redis executes after its poll failed has no effect, so that the next poll has the events", async (t) => {
  const late: (() => Promise<unknown>)[] = [];
  let isPaused = false;
  const wrap =
    (run: RunScript): RunScript =>
    (lua, key, args) => {
      if (!isPaused || lua !== REPLACE_FILTER) {
        return run(lua, key, args);
      }
      late.push(() => run(lua, key, args));
      return Promise.reject(new Error("no reply in time"));
    };
  const store = await startRedisFilters(t, { wrap });
  const { filters } = createReplica({ shared: store });
  const id = await filters.newLogFilter(query(), at(chain, 44));
  isPaused = true;
  await assert.rejects(filters.changes(id, at(chain, 51)), { status: 503 });
  isPaused = false;
  assert.ok(late.length > 0);
  for (const execute of late) {
    await execute();
  }
  assert.deepEqual(await readLogs(await filters.changes(id, at(chain, 51))), plainScan(chain, ANY, range(45, 51)));
});

test("of two polls of one head, one is the first, although both store the same cursor", async (t) => {
  const store = await startRedisFilters(t);
  const { filters } = createReplica({ shared: store });
  const id = await filters.newLogFilter(query(), at(chain, 44));
  const from = await store.read(id);
  assert.ok(from);
  const { number, hash } = chain[51] ?? assert.fail();
  const polls = ["first-first-", "second-secon"].map((nonce) =>
    store.replace(id, from, { ...from, cursor: { number, hash }, nonce }),
  );
  assert.deepEqual((await Promise.all(polls)).toSorted(), [false, true]);
});

/** Redis executes one script, and its replies are lost. */
const losingReplies =
  (script: string) =>
  (run: RunScript): RunScript =>
  async (lua, key, args) => {
    const reply = await run(lua, key, args);
    return lua === script ? Promise.reject(new Error("the reply is lost")) : reply;
  };

test("a filter that Redis creates after its request failed has another id than the local one", async (t) => {
  const shared = await startRedisFilters(t, { wrap: losingReplies(CREATE_FILTER) });
  const { filters } = createReplica({ shared });
  const id = await filters.newBlockFilter(at(chain, 44));
  assert.equal(await shared.read(id), undefined);
  await assert.rejects(createReplica({ shared }).filters.changes(id, at(chain, 51)), missing);
});

test("a step without a reply counts if Redis has executed it", async (t) => {
  const store = await startRedisFilters(t, { wrap: losingReplies(REPLACE_FILTER) });
  const { filters } = createReplica({ shared: store });
  const id = await filters.newLogFilter(query(), at(chain, 44));
  assert.deepEqual(await readLogs(await filters.changes(id, at(chain, 51))), plainScan(chain, ANY, range(45, 51)));
  assert.deepEqual(await readLogs(await filters.changes(id, at(chain, 51))), []);
});
