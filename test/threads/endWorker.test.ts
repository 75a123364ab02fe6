import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { Worker } from "node:worker_threads";
import { endWorker, loadedWorker } from "../../src/threads/workerThread.ts";

const start = (code: string): Worker =>
  new Worker(`const { parentPort } = require("node:worker_threads");${code}`, { eval: true });

test("a thread is ended once it has loaded, not before", async () => {
  const worker = start(`parentPort.once("message", () => parentPort.postMessage("ready"));`);
  const events: string[] = [];
  worker.on("message", (message) => events.push(message)).on("exit", () => events.push("exit"));
  const ended = endWorker(worker, loadedWorker(worker));
  await once(worker, "online");
  worker.postMessage("load");
  await ended;
  assert.deepEqual(events, ["ready", "exit"]);
});

test("a thread that fails while it loads is not waited for", async () => {
  const worker = start(`throw new Error("no module");`);
  worker.on("error", () => {});
  await endWorker(worker, loadedWorker(worker));
});
