import { registerHooks } from "node:module";
import { parentPort } from "node:worker_threads";

/** Loads the worker entry of `src`, then posts the URL of every module that was resolved for it, except Node's own. */
const urls = new Set<string>();
registerHooks({
  resolve: (specifier, context, nextResolve) => {
    const resolved = nextResolve(specifier, context);
    if (resolved.url.startsWith("file:")) {
      urls.add(resolved.url);
    }
    return resolved;
  },
});
await import("../../src/app/worker.ts");
parentPort?.postMessage([...urls]);
