import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import type { Address } from "../../src/ethereum/hex.ts";
import { metric, rpc } from "../support/clients/rpc.ts";
import { until } from "../support/clients/until.ts";
import { createFakeFeed } from "../support/fakes/fakeFeed.ts";
import { createService } from "../support/servers/service.ts";
import {
  createWitnessFetch,
  findTruth,
  framesOf,
  headTimes,
  MESSAGES_OF_BLOCK,
  positionOf,
  type Truth,
} from "./playBuilder.ts";
import { readRecordedBuilder } from "./realBlocks.ts";
import { startRecordedNode } from "./recordedNode.ts";

const recording = readRecordedBuilder();
const frames = framesOf(recording);
/** Fee parameters from the L1 attributes of this chain. */
const FOOTPRINT_SCALAR = 139;
/** Reads for each message and head. On a busy machine they are later than they were recorded. */
const READS_OF_EVENT = 2;

interface Seen {
  readonly mode: string | null;
  readonly blockHash: string;
  readonly number: number;
  /** Nonce and balance of each watched account. */
  readonly values: readonly (readonly [bigint, bigint])[];
}

const readPending = async (url: string, watched: readonly Address[]): Promise<Seen> => {
  const calls: readonly (readonly [string, readonly unknown[]])[] = [
    ["eth_getBlockByNumber", ["pending", false]],
    ...watched.flatMap((address): (readonly [string, readonly unknown[]])[] => [
      ["eth_getTransactionCount", [address, "pending"]],
      ["eth_getBalance", [address, "pending"]],
    ]),
  ];
  const response = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(calls.map(([method, params], id) => ({ jsonrpc: "2.0", id, method, params }))),
  });
  const text = await response.text();
  const results = (JSON.parse(text) as { readonly result: unknown }[]).map(({ result }) => result);
  const block = results[0] as { readonly hash: string; readonly number: string };
  assert.ok(block, text);
  return {
    mode: response.headers.get("x-forebay-pending"),
    blockHash: block.hash,
    number: Number(block.number),
    values: watched.map((_, at) => [BigInt(String(results[1 + 2 * at])), BigInt(String(results[2 + 2 * at]))]),
  };
};

/** Number of messages up to the block with a hash. An empty message has the hash of the previous one. */
const positionsOf = ({ blockHash, number }: Seen): readonly number[] => {
  const sealed = recording.blocks.find(({ hash }) => hash === blockHash);
  if (sealed) {
    return [positionOf(number, 5)];
  }
  const places = frames.filter(({ message }) => message.commitments.blockHash === blockHash);
  return places.map((frame) => positionOf(frame.number, frame.index));
};

/** Returns the accounts whose nonce or balance changes most often. */
const busiest = (truth: Truth, count: number): readonly Address[] => {
  const changes = new Map<Address, number>();
  for (const [position, after] of truth.entries()) {
    for (const [address, account] of after) {
      const before = truth[position - 1]?.get(address) ?? account;
      const isChanged = before.nonce !== account.nonce || before.balance !== account.balance;
      changes.set(address, (changes.get(address) ?? 0) + (isChanged ? 1 : 0));
    }
  }
  return [...changes]
    .toSorted(([, a], [, b]) => b - a)
    .slice(0, count)
    .map(([address]) => address);
};

test("a recorded feed at its recorded times, a node 20 ms away: live after the first block, each answer of one prefix", async (t) => {
  const truth = await findTruth(recording, createWitnessFetch(recording));
  const watched = busiest(truth, 8);
  const node = await startRecordedNode(t, recording);
  const feed = await createFakeFeed();
  t.after(() => feed.close());
  const connected = feed.connected();
  const service = await createService({
    // Only the header of the first block is recorded, and its transactions do not match its root.
    verify: "cheap",
    nodes: [{ url: node.url }],
    pending: { mode: "feed", feeds: [feed.url] },
    blockTimeMs: 1_000,
    forks: "jovian",
    // For values that no witness contains, the node returns zero. A check of known values would find that, and drop all.
    state: { follow: false },
  });
  t.after(() => service.close());
  await connected;
  const call = { from: watched[0], to: watched[1] };
  const simulated = await rpc(service.url, "eth_simulateV1", [{ blockStateCalls: [{ calls: [call] }] }, "latest"]);
  const [block] = simulated.body.result as readonly { readonly blobGasUsed: string }[];
  assert.equal(Number(block?.blobGasUsed), 100 * FOOTPRINT_SCALAR, simulated.text);
  // The executor's thread starts with the service. Send the recording after the thread has started.
  const [first] = frames;
  assert.ok(first);
  feed.send(recording.frames[0] ?? "");
  const isVerified = async () => {
    const { mode, blockHash } = await readPending(service.url, watched);
    return mode === "live" && blockHash === first.message.commitments.blockHash;
  };
  await until(isVerified, "the first message is verified");
  const turnsBefore = await metric(service.opsUrl, "forebay_pending_unverified_total");
  const events = [
    ...frames.map(({ atMs }, at) => ({ atMs, act: () => feed.send(recording.frames[at] ?? "") })).slice(1),
    ...[...headTimes(frames, 60)].map(([number, atMs]) => ({ atMs, act: () => node.setHead(number) })),
  ].toSorted((a, b) => a.atMs - b.atMs);
  const startMs = performance.now();
  const seen: Seen[] = [];
  const playing = { isOver: false };
  const play = async (): Promise<void> => {
    for (const [at, { atMs, act }] of events.entries()) {
      await wait(Math.max(0, startMs + atMs - performance.now()));
      await until(() => seen.length >= READS_OF_EVENT * at, "reads before the next message or head");
      act();
    }
    playing.isOver = true;
  };
  const read = async (): Promise<void> => {
    while (!playing.isOver) {
      seen.push(await readPending(service.url, watched));
      await wait(5);
    }
  };
  await Promise.all([play(), read()]);
  let before = 0;
  for (const each of seen) {
    // The first block is known to be complete once its head arrives.
    assert.ok(
      each.mode === "live" || (each.mode === "degraded" && before === MESSAGES_OF_BLOCK),
      each.mode ?? "no mode",
    );
    const positions = positionsOf(each);
    const position = positions.findLast((candidate) =>
      watched.every((address, at) => {
        const account = truth[candidate]?.get(address);
        return account?.nonce === each.values[at]?.[0] && account?.balance === each.values[at]?.[1];
      }),
    );
    assert.ok(position !== undefined, `values are not those of ${positions} messages`);
    assert.ok(position >= before, `${before} messages, then ${position}`);
    before = position;
  }
  const shown = new Set(seen.flatMap(positionsOf));
  t.diagnostic(`${seen.length} reads of ${shown.size} prefixes`);
  assert.equal(await metric(service.opsUrl, "forebay_pending_unverified_total"), turnsBefore);
  assert.equal(await metric(service.opsUrl, "forebay_pending_mismatches_total"), 0);
});
