import assert from "node:assert/strict";
import { test } from "node:test";
import type { ChainNode } from "../support/servers/chainNode.ts";
import { forge } from "./forge.ts";
import { mineFor, trackHeads } from "./trackHeads.ts";

const BLOCK_MS = 200;

const gauges = async ({ telemetry }: Awaited<ReturnType<typeof trackHeads>>, name: string) =>
  (await telemetry.registry.metrics())
    .split("\n")
    .filter((line) => line.startsWith(`${name}{`) && !/safe|finalized/.test(line))
    .map((line) => Number(line.split(" ").at(-1)));

test("while a fast chain is idle, the number of one of three origins moves no metric", async (t) => {
  const setup = await trackHeads(t, { height: 300, nodes: 3, secondsPerBlock: 0.2 });
  const [liar] = setup.nodes as [ChainNode];
  await mineFor(setup, 40_000, BLOCK_MS);
  liar.chain = forge(setup.chain, 1_000);
  await mineFor(setup, 10_000, BLOCK_MS);
  const height = Number(setup.chain.latest.number);
  const [head = 0] = await gauges(setup, "forebay_head");
  assert.ok(head <= height && head >= height - 25, `head ${head} of ${height}`);
  const lags = await gauges(setup, "forebay_upstream_lag_seconds");
  assert.ok(
    lags.every((seconds) => seconds <= (25 * setup.heads.blockTimeMs) / 1_000),
    `lags ${lags.join()}`,
  );
  assert.ok((setup.heads.newest?.number ?? 0n) <= setup.chain.latest.number);
});

test("while a fast chain is idle, a node far behind the other one is reported", async (t) => {
  const setup = await trackHeads(t, { height: 300, nodes: 2, secondsPerBlock: 0.2 });
  const [, behind] = setup.nodes as [ChainNode, ChainNode];
  behind.lag = 200;
  await mineFor(setup, 60_000, BLOCK_MS);
  const lags = await gauges(setup, "forebay_upstream_lag_seconds");
  assert.ok(Math.max(...lags) >= (150 * setup.heads.blockTimeMs) / 1_000, `lags ${lags.join()}`);
});
