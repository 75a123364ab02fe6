import { after, before, test } from "node:test";
import { compareFilters, type EmittedLogs, startEmittedLogs } from "./emittedLogs.ts";

const BLOCKS = 5_000;
const LOGS = 50_000;
const FILTERS = 200;

let emitted: EmittedLogs;
before(async () => {
  emitted = await startEmittedLogs(BLOCKS, LOGS);
});
after(() => emitted.close());

test(`${FILTERS} random filters over ${BLOCKS} blocks return the same logs as anvil`, () =>
  compareFilters(emitted, FILTERS));
