import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { EvmWorkers } from "../../src/runs/evmWorkers.ts";
import { PLAIN_CHAIN } from "../support/servers/evmWorkers.ts";
import { runEcho, startEchoThreads } from "./echoThreads.ts";

const createPool = (t: TestContext) => {
  const { threads, count } = startEchoThreads(t);
  const pool = new EvmWorkers({ ...PLAIN_CHAIN, threads, size: 3 });
  const run = (name: "echo" | "hang", input: unknown, signal?: AbortSignal) => runEcho(pool, name, input, signal);
  return { run, threads: count };
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
