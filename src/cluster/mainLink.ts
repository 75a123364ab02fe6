import { ChainCopy, type ChainCopyOptions, type MainChannel } from "./chainCopy.ts";
import type { ExpectedTransactions } from "./chainProtocol.ts";
import type { LoopWatch } from "./viewGate.ts";

export interface LinkedChainOptions extends Pick<ChainCopyOptions, "chain" | "onNodes" | "onError"> {
  /** Called if another process has learned that transactions exist. */
  onExpected(transactions: ExpectedTransactions): void;
  /** Called if the main process has dropped what it knew of the state. */
  onStateDropped(): void;
}

/** The link of a serving process to the main process. */
export class MainLink {
  readonly channel: MainChannel;
  readonly #watch: LoopWatch;
  readonly #chains = new Map<string, { readonly copy: ChainCopy; readonly options: LinkedChainOptions }>();

  constructor(channel: MainChannel, watch: LoopWatch) {
    this.channel = channel;
    this.#watch = watch;
    channel.offer({
      prepare: ({ chain, round, update }) => this.#chains.get(chain)?.copy.prepare(round, update),
      commit: ({ chain, round }) => this.#chains.get(chain)?.copy.commit(round),
      setNodes: ({ chain, nodes }) => this.#chains.get(chain)?.copy.setNodes(nodes),
      dropState: ({ chain }) => this.#chains.get(chain)?.options.onStateDropped(),
      expect: ({ chain, ...transactions }) => this.#chains.get(chain)?.options.onExpected(transactions),
    });
  }

  /** Creates the copy of a chain. It is empty until it is attached. */
  createCopy(options: LinkedChainOptions): ChainCopy {
    const copy = new ChainCopy({ ...options, main: this.channel, watch: this.#watch });
    this.#chains.set(options.chain, { copy, options });
    return copy;
  }

  /** Ends the copy of a chain. */
  remove(chain: string): void {
    this.#chains.get(chain)?.copy.close();
    this.#chains.delete(chain);
  }
}
