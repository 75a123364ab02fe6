// Prints what the imports of the package have started.
import process from "node:process";

const state = () => ({
  resources: process.getActiveResourcesInfo().sort(),
  events: process.eventNames().map(String).sort(),
});

const before = state();
await import("forebay");
await import("forebay/viem");
process.stdout.write(JSON.stringify({ before, after: state() }));
