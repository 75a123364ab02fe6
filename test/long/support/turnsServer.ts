import { PerformanceObserver } from "node:perf_hooks";
import { createService } from "../../support/servers/service.ts";

/**
 * A process with a service in front of the node of its first argument. It sends its port to its parent.
 * It answers each later message with two times since the one before.
 * They are the longest CPU time of a turn of the event loop, and the longest collection of garbage.
 */
const service = await createService(
  {
    name: "main",
    nodes: [{ url: process.argv[2] ?? "" }],
    passthrough: process.argv[2] ?? "",
    verify: "off",
    logs: { maxFilters: 10_000 },
  },
  { server: { maxBodyBytes: 8 * 1024 * 1024 } },
);
/** A timer of 1 ms runs in each turn that is longer. Time of the CPU, because other programs may use the core. */
const cpuMs = (): number => {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1_000;
};
let turnMs = 0;
let beforeMs = cpuMs();
setInterval(() => {
  const nowMs = cpuMs();
  turnMs = Math.max(turnMs, nowMs - beforeMs);
  beforeMs = nowMs;
}, 1);
let collectedMs = 0;
new PerformanceObserver((list) => {
  collectedMs = Math.max(collectedMs, ...list.getEntries().map(({ duration }) => duration));
}).observe({ entryTypes: ["gc"] });
process.on("disconnect", () => process.exit());
process.on("message", () => {
  process.send?.({ turnMs, collectedMs });
  turnMs = 0;
  collectedMs = 0;
});
process.send?.({ port: Number(new URL(service.url).port) });
