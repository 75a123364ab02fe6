import { once } from "node:events";
import { createServer } from "node:http";
import type { Anvil } from "../devnet/anvil.ts";

/**
 * A node whose chain changes between two questions, never during one, like that of a node with snapshots of its state. anvil
 * alone answers what is asked by a block's hash from the state of the block that it is just writing.
 */
export interface AtomicNode {
  readonly url: string;
  /** Waits until no question is under way; those that come meanwhile wait until it is done. */
  change(action: () => Promise<void>): Promise<void>;
  close(): Promise<void>;
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

  const server = createServer(async (incoming, response) => {
    try {
      const chunks: Buffer[] = [];
      for await (const chunk of incoming) chunks.push(chunk);
      const text = await answer(Buffer.concat(chunks).toString());
      response.setHeader("content-type", "application/json").end(text);
    } catch {
      response.destroy();
    }
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  const address = server.address();
  return {
    url: `http://127.0.0.1:${typeof address === "object" && address !== null ? address.port : 0}`,
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
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
};
