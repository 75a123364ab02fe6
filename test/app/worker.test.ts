import assert from "node:assert/strict";
import { on, once } from "node:events";
import { existsSync } from "node:fs";
import { extname } from "node:path";
import { test } from "node:test";
import { Worker } from "node:worker_threads";
import type { TaskName } from "../../src/app/worker.ts";
import { workerEntry } from "../../src/app/workerEntry.ts";
import { LOADED } from "../../src/threads/threadTask.ts";

/** Workers do not load network clients, nor metrics: nothing reads the registry of a worker. */
const FORBIDDEN = /\/node_modules\/(undici|ioredis|ws)\/|\/src\/telemetry\//;
const EVM = /\/src\/evm\/|\/node_modules\/@ethereumjs\/(evm|vm|statemanager)\//;

const start = (url: URL, task: string): Worker =>
  new Worker(url, { workerData: { task, data: { nativeContracts: [] } } });

/** Returns the URLs of the modules that the entry loads for a task, once the task is loaded. */
const loadedModules = async (task: TaskName): Promise<readonly string[]> => {
  const worker = start(new URL("./traced.worker.ts", import.meta.url), task);
  let isLoaded = false;
  // The first message is of the channel.
  for await (const [message] of on(worker, "message")) {
    if (isLoaded) {
      await worker.terminate();
      return message;
    }
    isLoaded = message === LOADED;
  }
  throw new Error("the thread has ended");
};

for (const [task, module] of [
  ["evm", "/src/simulation/runSimulation.ts"],
  ["verification", "/src/verification/checkBody.ts"],
] as const) {
  test(`the worker entry loads the task ${task} without network clients and metrics`, async () => {
    const urls = await loadedModules(task);
    assert.ok(urls.some((url) => url.endsWith(module)));
    assert.deepEqual(
      urls.filter((url) => FORBIDDEN.test(url)),
      [],
    );
  });
}

test("a thread that verifies responses does not load the EVM", async () => {
  const urls = await loadedModules("verification");
  assert.deepEqual(
    urls.filter((url) => EVM.test(url)),
    [],
  );
});

test("the entry's file has the extension of the tree that it is in", () => {
  const { url, task } = workerEntry("evm");
  assert.equal(task, "evm");
  assert.equal(extname(url.pathname), ".ts");
  assert.ok(existsSync(url));
});

test("a task that the entry does not list fails", async () => {
  const worker = start(workerEntry("evm").url, "constructor");
  const [error] = await once(worker, "error");
  assert.match(error.message, /no task is named constructor/);
});
