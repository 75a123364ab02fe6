import assert from "node:assert/strict";
import { test } from "node:test";
import { abortReason, isAborted, LazySignal, offAbort, onAbort, timeoutSignal } from "../../src/core/lazySignal.ts";
import { readRepositoryFile, repositoryFiles } from "../docs/repositoryFiles.ts";
import { createContext } from "../support/builders/request.ts";

test("listeners run once at the abort, unless they were removed, and the signal has the same reason", () => {
  const lazy = new LazySignal();
  const called: string[] = [];
  const removed = () => called.push("removed");
  lazy.add(() => called.push("first"));
  lazy.add(removed);
  lazy.remove(removed);
  const { signal } = lazy;
  lazy.abort("why");
  lazy.abort("again");
  assert.deepEqual(called, ["first"]);
  assert.deepEqual([lazy.isAborted, lazy.reason, signal.aborted, signal.reason], [true, "why", true, "why"]);
  const late = new LazySignal();
  late.abort("before");
  assert.deepEqual([late.signal.aborted, late.signal.reason], [true, "before"]);
});

test("a context is ended by its lazy signal, or by its signal if it has no lazy one", () => {
  const lazy = new LazySignal();
  const controller = new AbortController();
  const plain = createContext({ signal: controller.signal });
  const contexts = [
    plain.with({ ending: lazy }),
    plain.with({ ending: new LazySignal() }).with({ ending: lazy }),
    plain,
  ];
  const called: number[] = [];
  const listeners = contexts.map((_, index) => () => called.push(index));
  contexts.forEach((context, index) => {
    onAbort(context, listeners[index] ?? assert.fail());
  });
  offAbort(contexts[1] ?? plain, listeners[1] ?? assert.fail());
  lazy.abort("left");
  assert.deepEqual(contexts.map(isAborted), [true, true, false]);
  assert.equal(abortReason(contexts[1] ?? plain), "left");
  controller.abort("gone");
  assert.deepEqual(called, [0, 2]);
  assert.equal(abortReason(plain), "gone");
});

test("a context with another signal is ended by that signal alone", () => {
  const lazy = new LazySignal();
  const { signal } = new AbortController();
  const context = createContext().with({ ending: lazy }).with({ ending: { signal } });
  lazy.abort();
  assert.equal(isAborted(context), false);
});

test("a signal of a time that is not whole aborts, and src creates no other signal of a time", async () => {
  const signal = timeoutSignal(0.5);
  await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
  // The page of the status runs in a browser.
  const own = ["src/core/lazySignal.ts", "src/admin/statusPage.ts"];
  const others = repositoryFiles().filter(
    (path) =>
      /^src\/.*\.ts$/.test(path) && !own.includes(path) && readRepositoryFile(path).includes("AbortSignal.timeout("),
  );
  assert.deepEqual(others, []);
});
