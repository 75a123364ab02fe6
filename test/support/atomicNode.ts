import type { Anvil } from "../devnet/anvil.ts";
import { type Front, startFront } from "./front.ts";

/**
 * A node whose chain changes between two questions, never during one, like that of a node with snapshots of its state. anvil
 * alone answers what is asked by a block's hash from the state of the block that it is just writing.
 */
export interface AtomicNode extends Front {
  /** Waits until no question is under way; those that come meanwhile wait until it is done. */
  change(action: () => Promise<void>): Promise<void>;
}

export const createAtomicNode = async (anvil: Anvil): Promise<AtomicNode> => {
  let changing: Promise<void> | undefined;
  const answering = new Set<Promise<string>>();

  const answer = async (body: string): Promise<string> => {
    while (changing !== undefined) await changing;
    const text = anvil.post(body);
    answering.add(text);
    return text.finally(() => answering.delete(text));
  };

  const front = await startFront(answer);
  return {
    ...front,
    change: async (action) => {
      while (changing !== undefined) await changing;
      const { promise, resolve } = Promise.withResolvers<void>();
      changing = promise;
      try {
        await Promise.allSettled(answering);
        await action();
      } finally {
        changing = undefined;
        resolve();
      }
    },
  };
};
