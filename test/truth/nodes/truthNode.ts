import { setTimeout as sleep } from "node:timers/promises";
import { FakeError } from "../../support/fakes/fakeNode.ts";
import { startFront } from "../../support/fakes/front.ts";
import type { Lifespan } from "../../support/servers/redis.ts";
import { answerCall } from "../chain/nodeAnswers.ts";
import { ancestorAt, type TruthBlock } from "../chain/truthBlock.ts";
import type { TruthChain } from "../chain/truthChain.ts";

/** A node of the devnet. It follows the chain, with the configured faults. */
export interface TruthNode {
  readonly url: string;
  /** Blocks behind the chain's head. */
  lag: number;
  /** Time until a response is sent. */
  delayMs: number;
  readonly calls: number;
}

interface Call {
  readonly id: unknown;
  readonly method: string;
  readonly params?: readonly unknown[];
}

export const startTruthNode = async (t: Lifespan, chain: TruthChain): Promise<TruthNode> => {
  let calls = 0;
  const answer = (head: TruthBlock, { id, method, params = [] }: Call): object => {
    calls++;
    try {
      return { jsonrpc: "2.0", id, result: answerCall({ chain, head }, method, params) };
    } catch (error) {
      const { code, message } = error instanceof FakeError ? error : new FakeError(-32_603, String(error));
      return { jsonrpc: "2.0", id, error: { code, message } };
    }
  };
  const front = await startFront(async (body) => {
    if (node.delayMs > 0) {
      await sleep(node.delayMs);
    }
    const parsed: Call | Call[] = JSON.parse(body);
    const head = ancestorAt(chain.head, Math.max(0, chain.head.number - node.lag)) ?? chain.head;
    return JSON.stringify(Array.isArray(parsed) ? parsed.map((call) => answer(head, call)) : answer(head, parsed));
  });
  t.after(() => front.close());
  const node = {
    url: front.url,
    lag: 0,
    delayMs: 0,
    get calls() {
      return calls;
    },
  };
  return node;
};
