import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import type { Call } from "../../src/jsonrpc/call.ts";
import type { FakeChain } from "../support/fakes/fakeChain.ts";
import type { ChainNode } from "../support/servers/chainNode.ts";
import { forge } from "./forge.ts";
import { BLOCK_MS, run, type Tracking, trackHeads, watchHead } from "./trackHeads.ts";

const SLOW_MS = 10_000;
/** An origin whose head was served alone has a vote for three block times without a new head. A poll follows. */
const LONGEST_ALONE_MS = 6_500;
/** With a majority, a block is served when the second origin is polled. */
const LONGEST_AGREED_MS = 2_500;
/** An honest node is polled again after this time: its blocks are due, and appear a little later. */
const LONGEST_POLL_MS = 2_500;

/** The node answers these calls after 10 s. */
const slow = (node: ChainNode, { clock }: Pick<Tracking, "clock">, isSlow: (call: Call) => boolean): void => {
  const { send } = node;
  node.send = async (call, reach) => {
    if (isSlow(call)) {
      await clock.sleep(SLOW_MS, new AbortController().signal);
    }
    return send(call, reach);
  };
};

/** Measures the longest time without a poll of each node. */
const watchPolls = ({ clock }: Tracking, nodes: readonly ChainNode[]) => {
  let longestMs = 0;
  for (const node of nodes) {
    const { send } = node;
    let polledMs = clock.nowMs();
    node.send = (call, reach) => {
      if (call.params[0] === "latest") {
        longestMs = Math.max(longestMs, clock.nowMs() - polledMs);
        polledMs = clock.nowMs();
      }
      return send(call, reach);
    };
  }
  return { longest: () => longestMs };
};

const SLOW_CALLS: Readonly<Record<string, (call: Call) => boolean>> = {
  "each request": () => true,
  "each request but those for its newest block": ({ params }) => params[0] !== "latest",
};

/** Returns the liar's chain at a time. */
const LIES: Readonly<Record<string, () => (chain: FakeChain, before: FakeChain, elapsedMs: number) => FakeChain>> = {
  "is honest": () => (chain) => chain,
  "invents a child of each block": () => (chain) => forge(chain, 1),
  "invents a sibling of each block": () => (chain, before, elapsedMs) =>
    elapsedMs % 1_000 === 0 ? forge(chain, 1, { depth: 1 }) : before,
  "invents two siblings every 500 ms": () => (chain, before, elapsedMs) =>
    elapsedMs % 500 === 0 ? forge(chain, 1 + (elapsedMs % 1_000) / 500, { depth: 2 }) : before,
  "is on a branch of its own": () => {
    let isForged = false;
    return (chain, before, elapsedMs) => {
      const next = isForged ? before : forge(chain, 1, { depth: 3 });
      if (isForged && elapsedMs % BLOCK_MS === 0) {
        next.mine();
      }
      isForged = true;
      return next;
    };
  },
  "invents a chain far ahead": () => {
    let isForged = false;
    return (chain, before) => {
      const next = isForged ? before : forge(chain, 200);
      isForged = true;
      return next;
    };
  },
  "is on another chain": () => {
    let isForged = false;
    return (chain, before) => {
      const next = isForged ? before : forge(chain, 90, { depth: chain.blocks.length - 1 });
      isForged = true;
      return next;
    };
  },
};

const start = async (t: TestContext, nodes: number) => {
  const startSeconds = Math.floor(Date.now() / 1_000) - 160;
  const setup = await trackHeads(t, { height: 80, nodes, startSeconds });
  await run(setup, 2);
  return setup;
};

for (const nodes of [2, 3]) {
  for (const [calls, isSlow] of Object.entries(SLOW_CALLS)) {
    for (const [lie, createLie] of Object.entries(LIES)) {
      test(`the first of ${nodes} origins ${lie}, and answers ${calls} after 10 s: the head goes on`, async (t) => {
        const setup = await start(t, nodes);
        const [liar, ...others] = setup.nodes as [ChainNode, ...ChainNode[]];
        slow(liar, setup, isSlow);
        const next = createLie();
        const polls = watchPolls(setup, others);
        const head = watchHead(setup);
        await run(setup, 40, (elapsedMs) => {
          liar.chain = next(setup.chain, liar.chain, elapsedMs);
          head.step();
        });
        const pollMs = polls.longest();
        assert.ok(
          head.longestMs <= (nodes === 2 ? LONGEST_ALONE_MS : LONGEST_AGREED_MS),
          `no new head for ${head.longestMs} ms, no poll for ${pollMs} ms`,
        );
        assert.ok(pollMs <= LONGEST_POLL_MS, `no poll of an honest node for ${pollMs} ms`);
      });
    }
  }
}
