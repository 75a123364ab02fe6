import type { Anvil } from "../../devnet/anvil.ts";
import { type Front, startFront } from "./front.ts";

/**
 * A node whose chain changes between two requests, never during one, as in a node with snapshots of its state. Anvil alone
 * answers a request by block hash from the state of the block that it is writing.
 */
export interface AtomicNode extends Front {
  /** Runs a change once no request is in flight. Later requests wait until the change is done. */
  change(action: () => Promise<void>): Promise<void>;
}

export const createAtomicNode = async (anvil: Anvil): Promise<AtomicNode> => {
  let changing: Promise<void> | undefined;
  const answering = new Set<Promise<string>>();

  const answer = async (body: string): Promise<string> => {
    while (changing !== undefined) {
      await changing;
    }
    const text = anvil.post(body);
    answering.add(text);
    return text.finally(() => answering.delete(text));
  };

  const front = await startFront(answer);
  return {
    ...front,
    change: async (action) => {
      while (changing !== undefined) {
        await changing;
      }
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
