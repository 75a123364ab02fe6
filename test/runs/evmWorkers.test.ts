import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import type { StateSource } from "../../src/core/stateReader.ts";
import { EvmThreads } from "../../src/runs/evmThreads.ts";
import { EvmWorkers } from "../../src/runs/evmWorkers.ts";

const ENTRY = { url: new URL("./echo.worker.ts", import.meta.url), task: "echo" };
const source: StateSource = { id: "none", read: () => Promise.reject(new Error("no run reads state")) };

const createPool = (t: TestContext) => {
  let threads = 0;
  const shared = new EvmThreads({
    entry: ENTRY,
    onThreads: (count) => {
      threads = count;
    },
  });
  t.after(() => shared.close());
  const pool = new EvmWorkers({ threads: shared, size: 3 });
  const run = (name: string, input: unknown, signal = new AbortController().signal) =>
    pool.run({ name, input, source, nativeContracts: [], timeoutMs: 30_000, signal });
  return { run, threads: () => threads };
};

test("no thread starts before the first run, and sequential runs use one thread", async (t) => {
  const { run, threads } = createPool(t);
  assert.equal(threads(), 0);
  for (let at = 0; at < 5; at++) {
    assert.equal((await run("echo", at)).output, at);
    assert.equal(threads(), 1);
  }
});

test("a run starts another thread if all are busy, up to the size of the pool", async (t) => {
  const { run, threads } = createPool(t);
  const leaving = new AbortController();
  const hanging = [run("hang", 0, leaving.signal), run("hang", 1, leaving.signal)];
  assert.equal(threads(), 2);
  for (let at = 0; at < 5; at++) {
    assert.equal((await run("echo", at)).output, at);
  }
  assert.equal(threads(), 3);
  const many = Array.from({ length: 10 }, (_, at) => run("echo", at));
  assert.deepEqual(
    (await Promise.all(many)).map(({ output }) => output),
    many.map((_, at) => at),
  );
  assert.equal(threads(), 3);
  leaving.abort(new Error("aborted"));
  for (const run of hanging) {
    await assert.rejects(run, /aborted/);
  }
});
