import type { TestContext } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import type { PendingChange, PendingView } from "../../src/core/view.ts";
import type { Address } from "../../src/ethereum/hex.ts";
import type { FeedMessage } from "../../src/feed/feedMessage.ts";
import { Pending } from "../../src/pending/pending.ts";
import type { PendingOptions } from "../../src/pending/pendingParts.ts";
import { createTelemetry, type Telemetry } from "../../src/telemetry/telemetry.ts";
import { hashOf } from "../support/builders/flashblocks.ts";
import { createFakeHeads } from "../support/fakes/fakeHeads.ts";
import { createFakeExecutor } from "./fakeExecutor.ts";

/** An account that executions write. */
export const ALICE: Address = `0x${"aa".repeat(20)}`;
export const account = (nonce: bigint, balance: bigint) => ({ nonce, balance, codeHash: hashOf(3) });

export const decode = (body: Uint8Array | undefined): unknown => JSON.parse(new TextDecoder().decode(body));

export interface RigOptions extends Partial<Omit<PendingOptions, "heads" | "telemetry">> {
  readonly head?: bigint;
  readonly hasFeed?: boolean;
}

/** Creates pending views with a fake clock, fake heads and a fake executor. The test sends the messages. */
export const createRig = (t: TestContext, options: RigOptions = {}) => {
  t.mock.timers.enable({ apis: ["setTimeout", "setInterval"] });
  let nowMs = 1_000;
  const heads = createFakeHeads(options.head ?? 100n);
  const fake = createFakeExecutor();
  const telemetry = createTelemetry({ level: "silent" });
  /** The lines of the log from warnings on. */
  const warnings: string[] = [];
  const log: Telemetry["log"] = Object.assign(Object.create(telemetry.log), {
    warn: (_: unknown, message: string) => warnings.push(message),
  });
  const changes: PendingChange[] = [];
  const asked: string[] = [];
  const answers = new Map<string, unknown>();
  let deliver: (message: FeedMessage) => void = () => {};
  const pending = new Pending({
    chain: "test",
    mode: "auto",
    maxDepth: 5,
    skipsReceiptsRoot: false,
    heads,
    ...(options.hasFeed === false
      ? {}
      : {
          openFeed: (onMessage) => {
            deliver = onMessage;
            return { close: () => {} };
          },
        }),
    read: async (method, params) => {
      asked.push(method);
      return answers.get(`${method} ${params[0]}`) ?? answers.get(method) ?? null;
    },
    telemetry: { ...telemetry, log },
    nowMs: () => nowMs,
    ...options,
  });
  pending.begin(fake.executor);
  pending.subscribe((change) => changes.push(change));
  t.after(() => pending.close());

  const view = (): PendingView => {
    // A client that reads the pending block names it.
    pending.markPendingRead();
    const { pending: shown } = pending.view();
    if (!shown) {
      throw new Error("no pending view");
    }
    return shown;
  };
  return {
    pending,
    heads,
    fake,
    changes,
    warnings,
    asked,
    answers,
    view,
    /** Returns block and index of the view, such as `101-3`, or the mode if no block is pending. */
    shown: () => {
      const { newest, mode, blocksFrom } = view();
      return newest ? `${newest.number}-${newest.index}` : `${mode} ${blocksFrom}`;
    },
    /** Advances the time. */
    pass: async (ms: number) => {
      for (let left = ms; left > 0; left -= 50) {
        nowMs += Math.min(left, 50);
        t.mock.timers.tick(Math.min(left, 50));
      }
      await turn();
    },
    /** Sends messages, and resolves when their effects are complete. */
    send: async (...messages: readonly FeedMessage[]) => {
      for (const message of messages) {
        deliver(message);
      }
      await turn();
    },
    counted: async (
      name: "feedMessages" | "pendingMismatches" | "pendingUnverified" | "pendingDropped" | "feedGaps",
    ) => {
      const { values } = await telemetry.metrics[name].get();
      return Object.fromEntries(
        values.map(({ labels, value }) => [
          Object.entries(labels).find(([label]) => label !== "chain")?.[1] ?? name,
          value,
        ]),
      );
    },
  };
};
