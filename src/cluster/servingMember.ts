import { Channel, type ChannelEnds } from "../threads/channel.ts";
import type { ChainHost, ChainMember } from "./chainHost.ts";
import type { MainFunctions, OfChain, ServingFunctions } from "./chainProtocol.ts";

export type ServingChannel = Channel<ServingFunctions, MainFunctions>;

export interface ServingMemberOptions extends ChannelEnds {
  /** Returns the host of a chain by its key. */
  host(chain: string): ChainHost | undefined;
}

/** One serving process, as the main process sees it: its chains, and its calls to their hosts. */
export class ServingMember {
  readonly channel: ServingChannel;
  readonly #options: ServingMemberOptions;
  readonly #attached = new Map<string, { readonly host: ChainHost; readonly member: ChainMember }>();

  constructor(options: ServingMemberOptions) {
    this.#options = options;
    this.channel = new Channel(options);
    this.#offerChains();
  }

  /** Removes the process from all chains: no round waits for it any more. */
  close(): void {
    this.channel.close();
    for (const chain of this.#attached.keys()) {
      this.#detach(chain);
    }
  }

  #offerChains(): void {
    const hostOf = ({ chain }: OfChain) => this.#chain(chain).host;
    this.channel.offer({
      attach: ({ chain }) => this.#attach(chain),
      detach: ({ chain }) => this.#detach(chain),
      acknowledge: ({ chain, round }) => {
        const attached = this.#attached.get(chain);
        attached?.host.acknowledge(attached.member, round);
      },
      markActive: (body) => hostOf(body).markActive(),
      want: (body) => hostOf(body).want(body.number),
      refresh: (body) => hostOf(body).refresh(),
      run: (body, call) => hostOf(body).run(body, call),
      readState: (body) => hostOf(body).readState(body),
      answerCall: (body) => hostOf(body).answerCall(body),
      enterState: (body) => hostOf(body).enterState(body.asked, body.response),
      enterProof: (body) => hostOf(body).enterProof(body),
      forgetState: (body) => hostOf(body).forgetState(),
      submit: (body) => hostOf(body).submit(body.raw),
      expect: ({ chain, ...transactions }) => this.#chain(chain).host.expect(this.#chain(chain).member, transactions),
      advanceNonce: (body) => hostOf(body).advanceNonce(body.sender, body.nonce),
      filter: (body) => hostOf(body).filter(body),
    });
  }

  #chain(chain: string) {
    const attached = this.#attached.get(chain);
    if (attached === undefined) {
      throw new Error("the chain is not served any more");
    }
    return attached;
  }

  async #attach(chain: string): Promise<void> {
    const host = this.#options.host(chain);
    if (host === undefined) {
      throw new Error("the main process does not follow this chain");
    }
    const { channel } = this;
    const member: ChainMember = {
      prepare: (round, update) => channel.notifyNow("prepare", { chain, round, update }),
      commit: (round) => channel.notifyNow("commit", { chain, round }),
      setNodes: (nodes) => channel.notify("setNodes", { chain, nodes }),
      dropState: () => channel.notify("dropState", { chain }),
      expect: (transactions) => channel.notify("expect", { chain, ...transactions }),
    };
    this.#attached.set(chain, { host, member });
    await host.attach(member);
  }

  #detach(chain: string): void {
    const attached = this.#attached.get(chain);
    this.#attached.delete(chain);
    attached?.host.detach(attached.member);
  }
}
