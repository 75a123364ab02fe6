import assert from "node:assert/strict";
import type { TestContext } from "node:test";
import type { StateChanges } from "../../src/core/stateReader.ts";
import type { View } from "../../src/core/view.ts";
import { type Address, type Data, type Hash, parseData } from "../../src/ethereum/hex.ts";
import { mergeChanges } from "../../src/evm/reads/writtenState.ts";
import type { FeedMessage } from "../../src/feed/feedMessage.ts";
import { Pending } from "../../src/pending/pending.ts";
import { createTelemetry } from "../../src/telemetry/telemetry.ts";
import { createNodeState } from "../support/builders/nodeState.ts";
import { createFakeHeads } from "../support/fakes/fakeHeads.ts";
import { jobsOf, messagesOf, type readRecordedBuilder } from "./realBlocks.ts";
import { createRunnerExecutor } from "./runnerExecutor.ts";
import { createWitnessNode, type WitnessBlock } from "./witnessNode.ts";

export type Recording = ReturnType<typeof readRecordedBuilder>;

export const MESSAGES_OF_BLOCK = 6;
const FIRST_BLOCK = 429;
const BLOCK_TIME_MS = 1_000;
const SAMPLE_MS = 20;

/** Number of messages in a view. 0 is the parent of the first recorded block. */
export const positionOf = (number: bigint | number, index: number): number =>
  (Number(number) - FIRST_BLOCK) * MESSAGES_OF_BLOCK + index + 1;
const positionOfSealed = (number: bigint): number => positionOf(number, MESSAGES_OF_BLOCK - 1);

export interface Frame {
  readonly atMs: number;
  readonly number: number;
  readonly index: number;
  readonly message: FeedMessage;
}

/** Times are relative to the first frame. */
export const framesOf = (recording: Recording): readonly Frame[] => {
  const startMs = recording.arrivals[0]?.at ?? 0;
  const messages = messagesOf(recording);
  return recording.arrivals.map(({ at, block, index }, position) => {
    const message = messages[position];
    assert.ok(message?.index === index);
    return { atMs: at - startMs, number: block, index, message };
  });
};

/** A block is sealed before or after the first message of the next one. */
export const headTimes = (frames: readonly Frame[], afterNextMs: number): ReadonlyMap<number, number> =>
  new Map(
    frames
      .filter(({ index }) => index === 0)
      .map(({ number, atMs }) => {
        const next = frames.find((frame) => frame.number === number + 1);
        return [number, (next?.atMs ?? atMs + BLOCK_TIME_MS) + afterNextMs];
      }),
  );

export interface Sample {
  readonly atMs: number;
  readonly view: View;
}

export interface PlayOptions {
  readonly frames: readonly Frame[];
  readonly headTimes: ReadonlyMap<number, number>;
  readonly delayMs?: number;
}

const toFakeBlock = ({ number, hash, timestamp, logsBloom, ...rest }: WitnessBlock) => ({
  number: BigInt(number),
  hash,
  timestamp: BigInt(String(timestamp)),
  logsBloom: parseData(String(logsBloom) as Data),
  header: { number, hash, timestamp, logsBloom, ...rest },
});

/** The state of the blocks below, read once for all runs. */
export const createWitnessFetch = (recording: Recording) => {
  const node = createWitnessNode({
    ...recording,
    handlers: {
      eth_getTransactionByBlockHashAndIndex: ([blockHash, index]) => {
        const block = recording.blocks.find(({ hash }) => hash === blockHash);
        return ((block?.transactions ?? []) as readonly unknown[])[Number(index)] ?? null;
      },
      eth_getTransactionReceipt: ([transactionHash]) =>
        [...recording.receipts.values()].flat().find((receipt) => receipt.transactionHash === transactionHash) ?? null,
    },
  });
  const state = createNodeState({ fetch: node.fetch, maxBytes: 64 * 1024 * 1024 });
  return {
    node,
    stateAt: (block: Parameters<typeof state.at>[0], hint?: Parameters<typeof state.at>[1]) => state.at(block, hint),
  };
};

/** Sends frames and heads at their times on a fake clock. Samples the view after each event and every few milliseconds. */
export const play = async (
  t: TestContext,
  recording: Recording,
  { node, stateAt }: ReturnType<typeof createWitnessFetch>,
  { frames, headTimes: heads, delayMs = 0 }: PlayOptions,
) => {
  t.mock.timers.enable({ apis: ["setTimeout", "setInterval"] });
  let nowMs = 0;
  const fakeHeads = createFakeHeads(BigInt(recording.parent.number));
  fakeHeads.move(toFakeBlock(recording.parent));
  const { executor, idle } = createRunnerExecutor({
    forks: recording.forks,
    fetch: (base, keys) => stateAt(base).read(keys, AbortSignal.timeout(60_000)),
    delayMs,
  });
  const telemetry = createTelemetry({ level: "silent" });
  let deliver: (message: FeedMessage) => void = () => {};
  const pending = new Pending({
    chain: "recorded",
    mode: "auto",
    maxDepth: 5,
    skipsReceiptsRoot: false,
    heads: { ...fakeHeads, current: fakeHeads.current, blockTimeMs: BLOCK_TIME_MS },
    forks: () => recording.forks,
    openFeed: (onMessage) => {
      deliver = onMessage;
      return { close: () => {} };
    },
    read: node.ask,
    telemetry,
    nowMs: () => nowMs,
  });
  pending.begin(executor);
  const samples: Sample[] = [];
  const sample = async (): Promise<void> => {
    await idle();
    samples.push({ atMs: nowMs, view: pending.view() });
  };
  const events = [
    ...frames.map(({ atMs, message }) => ({ atMs, act: () => deliver(message) })),
    ...[...heads].map(([number, atMs]) => {
      const block = recording.blocks.find((each) => BigInt(each.number) === BigInt(number));
      assert.ok(block);
      return { atMs, act: () => fakeHeads.move(toFakeBlock(block)) };
    }),
  ].toSorted((a, b) => a.atMs - b.atMs);
  const endMs = (events.at(-1)?.atMs ?? 0) + SAMPLE_MS;
  while (nowMs <= endMs) {
    const [next] = events;
    const nextMs = Math.min(next?.atMs ?? Number.POSITIVE_INFINITY, nowMs - (nowMs % SAMPLE_MS) + SAMPLE_MS);
    const passedMs = nextMs - nowMs;
    nowMs = nextMs;
    if (passedMs > 0) {
      t.mock.timers.tick(passedMs);
    }
    while (events[0] && events[0].atMs <= nowMs) {
      events.shift()?.act();
    }
    await sample();
  }
  await pending.close();
  t.mock.timers.reset();
  const { values } = await telemetry.metrics.pendingUnverified.get();
  const gaps = (await telemetry.metrics.feedGaps.get()).values;
  const mismatches = (await telemetry.metrics.pendingMismatches.get()).values;
  const sum = (list: readonly { readonly value: number }[]) => list.reduce((total, { value }) => total + value, 0);
  return { samples, unverified: sum(values), gaps: sum(gaps), mismatches: sum(mismatches) };
};

export interface Account {
  readonly nonce: bigint;
  readonly balance: bigint;
}

/** The accounts that the recorded blocks write, after each message, as executed on the witnesses. */
export type Truth = readonly ReadonlyMap<Address, Account>[];

const readBase = async (
  { stateAt }: ReturnType<typeof createWitnessFetch>,
  { parent }: Recording,
  addresses: readonly Address[],
) => {
  const keys = { accounts: addresses, slots: [], blockHashes: [] };
  const base = { number: BigInt(parent.number), hash: parent.hash };
  const { accounts } = await stateAt(base).read(keys, AbortSignal.timeout(60_000));
  return new Map<Address, Account>(accounts.map(([address, account]) => [address, toAccount(account)]));
};

const toAccount = (account: { readonly nonce: bigint; readonly balance: bigint } | undefined): Account => ({
  nonce: account?.nonce ?? 0n,
  balance: account?.balance ?? 0n,
});

/** Executes the recorded messages on the witnesses. Returns the writes of each message. */
export const executeRecording = async (
  recording: Recording,
  fetch: ReturnType<typeof createWitnessFetch>,
): Promise<readonly StateChanges[]> => {
  const { parent, forks } = recording;
  const { executor } = createRunnerExecutor({
    forks,
    fetch: (base, keys) => fetch.stateAt(base).read(keys, AbortSignal.timeout(60_000)),
    delayMs: 0,
  });
  executor.rebase({ number: BigInt(parent.number), hash: parent.hash }, undefined);
  const layers: StateChanges[] = [];
  for (const job of jobsOf(messagesOf(recording), 1)) {
    const { changes, unverified } = await executor.execute(job);
    assert.ok(changes, `${job.environment.number}-${job.index}: ${unverified}`);
    layers.push(changes);
  }
  return layers;
};

export const findTruth = async (recording: Recording, fetch: ReturnType<typeof createWitnessFetch>): Promise<Truth> => {
  const layers = await executeRecording(recording, fetch);
  const written = mergeChanges(layers);
  const start = await readBase(fetch, recording, [...written.keys()]);
  const truth: ReadonlyMap<Address, Account>[] = [start];
  for (const layer of layers) {
    const next = new Map<Address, Account>(truth.at(-1));
    for (const [address, entry] of layer) {
      next.set(address, toAccount(entry.account));
    }
    truth.push(next);
  }
  return truth;
};

/** Returns the position of the source that answers state reads in this view. */
export const statePositionOf = ({ heads, pending }: View): number => {
  assert.ok(pending && pending.stateFrom !== "node");
  const { newest } = pending;
  if (pending.stateFrom === "latest" || !newest) {
    return positionOfSealed(heads.latest.number);
  }
  return positionOf(newest.number, newest.index);
};

/** Asserts that every account has its values after this number of messages. */
export const assertState = ({ heads, pending }: View, truth: Truth, position: number): void => {
  assert.ok(pending);
  assert.equal(pending.base.hash, heads.latest.hash);
  const sealed = truth[positionOfSealed(heads.latest.number)];
  for (const [address, { nonce, balance }] of truth[position] ?? []) {
    const written = pending.account(address);
    const account: Account | undefined = written ? toAccount(written.account) : sealed?.get(address);
    assert.deepEqual([account?.nonce, account?.balance], [nonce, balance], `${address} after ${position} messages`);
  }
};

export const hashesOf = (block: WitnessBlock): readonly Hash[] =>
  (block.transactions as readonly (Hash | { readonly hash: Hash })[]).map((each) =>
    typeof each === "string" ? each : each.hash,
  );
