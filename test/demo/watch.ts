import type { Status } from "../../src/admin/status.ts";
import { metric } from "../support/clients/rpc.ts";
import { NO_TOTALS, subtractTotals, type Totals, unitShare } from "./figures.ts";
import { RECENT_SECONDS, type Shown, type ShownStatus } from "./screen.ts";
import type { Stack } from "./stack.ts";

/** Collects what is shown. */
export interface Watch {
  /** Reads the status of forebay, and counts. A forebay that restarts is no error. */
  read(): Promise<void>;
  shown(): Omit<Shown, "acts" | "tries">;
}

interface Sample {
  readonly atMs: number;
  readonly totals: Totals;
}

/** The time of one bar. */
const SHARE_MS = 2_000;
const SECOND_MS = 1_000;

const readStatus = async (statusUrl: string): Promise<ShownStatus | undefined> => {
  const status = (await (await fetch(`${statusUrl}/status.json`)).json()) as Status;
  return status.chains.find(({ name }) => name === "devnet");
};

export const createWatch = (stack: Pick<Stack, "url" | "statusUrl" | "opsUrl" | "chainId" | "totals">): Watch => {
  const startMs = performance.now();
  let samples: readonly Sample[] = [{ atMs: startMs, totals: NO_TOTALS }];
  const shares: number[] = [];
  let lastShared: Sample = { atMs: startMs, totals: NO_TOTALS };
  let status: ShownStatus | undefined;
  let reused: Shown["reused"];
  let counted = { block: 0, results: 0 };

  /** Counts results since the block before. */
  const readReused = async (block: number): Promise<void> => {
    if (block === counted.block) {
      return;
    }
    const results = await metric(stack.opsUrl, "forebay_state_answers_total", 'event="reused"');
    // A restarted process counts from zero.
    if (counted.block > 0 && results >= counted.results) {
      reused = { block: block - 1, results: results - counted.results };
    }
    counted = { block, results };
  };

  const sample = (): void => {
    const now = { atMs: performance.now(), totals: stack.totals() };
    const isRecent = ({ atMs }: Sample): boolean => now.atMs - atMs <= RECENT_SECONDS * SECOND_MS;
    const first = samples.findIndex(isRecent);
    samples = [...samples.slice(first === -1 ? samples.length - 1 : Math.max(0, first - 1)), now];
    if (now.atMs - lastShared.atMs >= SHARE_MS) {
      const share = unitShare(subtractTotals(now.totals, lastShared.totals));
      lastShared = now;
      shares.push(...(share === undefined ? [] : [share]));
    }
  };

  return {
    read: async () => {
      sample();
      try {
        status = await readStatus(stack.statusUrl);
        await readReused(status?.latest?.number ?? 0);
      } catch {
        status = undefined;
      }
    },
    shown: () => {
      const totals = stack.totals();
      return {
        ...{ url: stack.url, statusUrl: stack.statusUrl, opsUrl: stack.opsUrl, chainId: stack.chainId },
        ...{ seconds: (performance.now() - startMs) / SECOND_MS, status, totals, shares, reused },
        recent: subtractTotals(totals, samples[0]?.totals ?? NO_TOTALS),
      };
    },
  };
};
