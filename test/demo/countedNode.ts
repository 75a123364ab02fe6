import { callsOf, type Front, startFront } from "../support/fakes/front.ts";

/** The address of a node for forebay. */
export interface CountedNode extends Front {
  /** Calls that arrived, by method. Calls of a batch count singly. */
  readonly calls: ReadonlyMap<string, number>;
}

/** Starts a server in front of a node that counts the calls. `post` sends a body to the node. */
export const startCountedNode = async (post: (body: string) => Promise<string>): Promise<CountedNode> => {
  const calls = new Map<string, number>();
  const front = await startFront((body) => {
    for (const { method } of callsOf(body)) {
      calls.set(method, (calls.get(method) ?? 0) + 1);
    }
    return post(body);
  });
  return { ...front, calls };
};
