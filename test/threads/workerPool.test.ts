import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { setImmediate } from "node:timers/promises";
import { WorkerPool } from "../../src/threads/workerPool.ts";

const ENTRY = { url: new URL("./jobs.worker.ts", import.meta.url), task: "jobs" };

/** Copying them takes several turns of the event loop. */
const MANY_BYTES = 16 * 1024 * 1024;

const createPool = (t: TestContext, maxWaiting = 8) => {
  const failures: string[] = [];
  const pool = new WorkerPool({
    entry: ENTRY,
    size: 1,
    maxWaiting,
    limits: {},
    onFailure: ({ message }) => failures.push(message),
  });
  t.after(() => pool.close());
  const run = (
    input: string,
    onRequest: (request: unknown) => Promise<unknown> = async (value) => `value of ${value}`,
  ) => pool.run({ input, affinity: "", onRequest, timeoutMs: 30_000, signal: new AbortController().signal });
  return { pool, run, failures };
};

test("a job gets the values that it requests from the main thread", async (t) => {
  const { run } = createPool(t);
  assert.equal(await run("ask"), "value of ask");
});

test("a request that fails rejects the job with the same error, and the thread takes the next job", async (t) => {
  const { run, failures } = createPool(t);
  const error = new Error("no value");
  await assert.rejects(
    run("ask", () => Promise.reject(error)),
    (rejected) => rejected === error,
  );
  assert.equal(await run("ask"), "value of ask");
  assert.deepEqual(failures, []);
});

test("a job that throws and a thread that ends are reported, and the next job is answered", async (t) => {
  const { run, failures } = createPool(t);
  await assert.rejects(run("throw"), { name: "WorkerPoolError", reason: "failed" });
  await assert.rejects(run("exit"), { name: "WorkerPoolError", reason: "failed" });
  assert.equal(await run("ask"), "value of ask");
  assert.match(failures[0] ?? "", /thrown by the job/);
  assert.equal(failures[1], "a worker thread ended");
});

test("a thread gets a copy of a job's bytes, without what is beside them", async (t) => {
  const { pool } = createPool(t);
  const reply = new Uint8Array(100_000).fill(7);
  assert.deepEqual(await pool.run({ input: { bytes: reply.subarray(10, 99_990) } }), [99_980, 99_980]);
  assert.equal(reply.byteLength, 100_000);
  assert.equal(reply.at(50), 7);
});

test("a caller that leaves while the bytes of its job are copied frees the thread", async (t) => {
  const { pool, run, failures } = createPool(t);
  assert.equal(await run("ask"), "value of ask");
  const leaving = new AbortController();
  const left = pool.run({ input: { bytes: new Uint8Array(MANY_BYTES) }, signal: leaving.signal });
  leaving.abort(new Error("left"));
  await assert.rejects(left, /left/);
  assert.equal(await run("ask"), "value of ask");
  assert.deepEqual(failures, []);
});

/** There is no memory for a copy of these bytes. */
const tooManyBytes = (): Uint8Array => Object.defineProperty(new Uint8Array(1), "byteLength", { value: 2 ** 50 });

test("a job whose bytes cannot be copied is rejected, and its thread takes the next one", async (t) => {
  const { pool, run } = createPool(t);
  await assert.rejects(pool.run({ input: { bytes: tooManyBytes() } }), { reason: "failed" });
  assert.equal(await run("ask"), "value of ask");
});

test("jobs beyond the limit are rejected, and those that wait are rejected when the pool closes", async (t) => {
  const { pool, run } = createPool(t, 1);
  const waiting = run("ask");
  await assert.rejects(run("ask"), { reason: "queueFull" });
  const closing = pool.close();
  await assert.rejects(waiting, { reason: "closed" });
  await closing;
  await assert.rejects(run("ask"), { reason: "closed" });
});

test("a job that runs when the pool closes is rejected, and is no failure of its thread", async (t) => {
  const { pool, run, failures } = createPool(t);
  const asked = Promise.withResolvers<void>();
  const running = run("ask", () => {
    asked.resolve();
    return new Promise(() => undefined);
  });
  await asked.promise;
  const rejected = assert.rejects(running, { reason: "closed" });
  await pool.close();
  await rejected;
  assert.deepEqual(failures, []);
});

test("lanes take turns, and a lane runs no more jobs at once than it may", async (t) => {
  const { pool } = createPool(t);
  pool.grow(2);
  const order: string[] = [];
  const release = Promise.withResolvers<string>();
  const lanes = { a: pool.lane({ maxWaiting: 8, maxRunning: 1 }), b: pool.lane({ maxWaiting: 8 }) };
  const run = (name: keyof typeof lanes, job: string) =>
    lanes[name].run({
      input: "ask",
      affinity: undefined,
      // The requests of two threads arrive in any order. The pool takes the jobs in turn.
      begin: () => {
        order.push(job);
        return () => undefined;
      },
      onRequest: () => release.promise,
      timeoutMs: 30_000,
      signal: new AbortController().signal,
    });
  const jobs = [run("a", "a1"), run("a", "a2"), run("a", "a3"), run("b", "b1"), run("b", "b2")];
  while (order.length < 2) {
    await setImmediate();
  }
  assert.deepEqual(order, ["a1", "b1"], "a2 has waited for longer than b1");
  assert.equal(lanes.a.running, 1);
  release.resolve("value");
  await Promise.all(jobs);
  assert.deepEqual([...order].sort(), ["a1", "a2", "a3", "b1", "b2"]);
  assert.ok(order.indexOf("b2") < order.indexOf("a3"), order.join());
  assert.equal(lanes.a.running, 0);
});

test("a closed lane rejects its waiting jobs, and the other lanes continue", async (t) => {
  const { pool, run } = createPool(t);
  const lane = pool.lane({ maxWaiting: 8 });
  const waiting = lane.run({
    input: "ask",
    affinity: undefined,
    onRequest: async () => "value",
    timeoutMs: 30_000,
    signal: new AbortController().signal,
  });
  pool.closeLane(lane);
  await assert.rejects(waiting, { reason: "closed" });
  assert.equal(await run("ask"), "value of ask");
});
