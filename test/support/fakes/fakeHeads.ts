import type { HeadChange, HeaderFields, Heads, RingBlock } from "../../../src/core/heads.ts";
import { hashOf } from "../builders/flashblocks.ts";

export interface FakeBlock {
  readonly number: bigint;
  readonly hash?: RingBlock["hash"];
  readonly timestamp?: bigint;
  readonly logsBloom?: Uint8Array;
  readonly header?: HeaderFields;
}

/** Creates heads that the test moves. Block N has hash N, unless the test provides one, and a time two seconds after its parent. */
export const createFakeHeads = (first: bigint) => {
  const listeners = new Set<(change: HeadChange) => void>();
  const headers = new Map<string, HeaderFields>();
  const toRing = (block: FakeBlock, parent: RingBlock["hash"]): RingBlock => ({
    number: block.number,
    hash: block.hash ?? hashOf(block.number),
    parentHash: parent,
    timestamp: block.timestamp ?? 1_700_000_000n + block.number * 2n,
    logsBloom: block.logsBloom ?? new Uint8Array(256),
  });
  let ring: RingBlock[] = [toRing({ number: first }, hashOf(first - 1n))];

  const heads = (): Heads => {
    const blocks = ring;
    const [oldest] = blocks;
    const latest = blocks.at(-1);
    if (!oldest || !latest) {
      throw new Error("no blocks");
    }
    const at = (number: bigint) => blocks.find((block) => block.number === number);
    return {
      latest,
      isAgreed: false,
      safe: undefined,
      finalized: undefined,
      at,
      header: (number) => headers.get(at(number)?.hash ?? ""),
      oldest: oldest.number,
    };
  };
  let current = heads();

  const native: boolean[] = [];
  let looks = 0;
  return {
    blockTimeMs: 2_000,
    /** The last argument of `setNative`. */
    native,
    setNative: (value: boolean) => {
      native.push(value);
    },
    current: () => current,
    /** Number of refreshes. */
    get looks() {
      return looks;
    },
    refresh: async () => {
      looks++;
      return current;
    },
    reach: () => undefined,
    subscribe: (listener: (change: HeadChange) => void) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    /** Publishes the next heads: these blocks replace all blocks at and above the first of them. */
    move: (...blocks: readonly FakeBlock[]) => {
      const [lowest] = blocks;
      if (!lowest) {
        return;
      }
      const from = ring.filter(({ number }) => number >= lowest.number);
      ring = ring.filter(({ number }) => number < lowest.number);
      const to = blocks.map((block) => {
        const sealed = toRing(block, ring.at(-1)?.hash ?? hashOf(block.number - 1n));
        ring.push(sealed);
        if (block.header) {
          headers.set(sealed.hash, block.header);
        }
        return sealed;
      });
      ring = [...ring];
      current = heads();
      for (const listener of listeners) {
        listener({ heads: current, from, to });
      }
    },
  };
};
