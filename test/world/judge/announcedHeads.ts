import type { TruthChain } from "../chain/truthChain.ts";
import type { JudgedAnswer } from "./outcome.ts";

interface Announced {
  /** The time at which its answer had arrived. */
  readonly answeredMs: number;
  /** The time at which the block became a head. */
  readonly publishedMs: number;
}

const MAX_ANNOUNCED = 64;

/** Returns when the head of an answer at the latest became a head. A number may be that of several branches: the first counts. */
const publishedMsOf = (chain: TruthChain, { call, result }: JudgedAnswer): number | undefined => {
  if (result === undefined || result === null) {
    return undefined;
  }
  if (call.method === "eth_blockNumber") {
    return chain.publishedMsOf(Number(result));
  }
  const isLatest = call.method === "eth_getBlockByNumber" && call.params[0] === "latest";
  const block = isLatest ? chain.block(Reflect.get(Object(result), "hash")) : undefined;
  return block && chain.publishedMs(block);
};

/** The newest head that each replica has shown. A later answer of it is of that head, or of a newer one. */
export class AnnouncedHeads {
  readonly #byReplica = new Map<string, Announced[]>();

  /** Returns when the newest head that the replica had shown before a request became a head. */
  before(replica: string, startMs: number): number | undefined {
    return this.#byReplica.get(replica)?.findLast(({ answeredMs }) => answeredMs < startMs)?.publishedMs;
  }

  add(replica: string, chain: TruthChain, answer: JudgedAnswer): void {
    const publishedMs = publishedMsOf(chain, answer);
    if (publishedMs === undefined || publishedMs > answer.endMs) {
      return;
    }
    const announced = this.#byReplica.get(replica) ?? [];
    if (publishedMs > (announced.at(-1)?.publishedMs ?? Number.NEGATIVE_INFINITY)) {
      announced.push({ answeredMs: answer.endMs, publishedMs });
      announced.splice(0, announced.length - MAX_ANNOUNCED);
    }
    this.#byReplica.set(replica, announced);
  }
}
