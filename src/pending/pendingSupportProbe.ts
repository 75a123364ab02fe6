import { isQuantity } from "../ethereum/hex.ts";

export interface NodeProbeOptions {
  readonly ask: (method: string, params: readonly unknown[]) => Promise<unknown>;
  /** Milliseconds of a clock that does not go back. */
  readonly now: () => number;
  readonly onChange: () => void;
}

const ASKED_RECENTLY_MS = 30_000;

const isAbove = (block: unknown, head: bigint): boolean =>
  typeof block === "object" &&
  block !== null &&
  "number" in block &&
  isQuantity(block.number) &&
  BigInt(block.number) > head;

/** Whether the node builds a pending block of its own: else its `pending` is no more than `latest`, or null. */
export const createPendingSupportProbe = ({ ask, now, onChange }: NodeProbeOptions) => {
  let builds = false;
  let askedAtMs = Number.NEGATIVE_INFINITY;
  let probedHead: bigint | undefined;

  const refresh = async (head: bigint): Promise<void> => {
    probedHead = head;
    try {
      const is = isAbove(await ask("eth_getBlockByNumber", ["pending", false]), head);
      const changed = is !== builds;
      builds = is;
      if (changed) onChange();
    } catch {
      // No node answers: what was known stands.
    }
  };

  const isAsked = (): boolean => now() - askedAtMs < ASKED_RECENTLY_MS;

  return {
    nodeBuilds: () => builds,
    isAsked,
    /** Somebody took a view. */
    asked: () => {
      askedAtMs = now();
    },
    /** Asks once a block, while somebody takes views: an idle chain costs no calls. */
    refresh: (head: bigint): void => {
      if (head !== probedHead && isAsked()) void refresh(head);
    },
  };
};
