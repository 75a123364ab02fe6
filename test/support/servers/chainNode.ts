import type { CallScope, Context } from "../../../src/core/context.ts";
import { NodeError } from "../../../src/core/node.ts";
import type { RpcRequest, RpcResponse } from "../../../src/core/rpcSource.ts";
import type { Call } from "../../../src/jsonrpc/call.ts";
import { BackOff } from "../../../src/nodes/backOff.ts";
import type { Use } from "../../../src/nodes/nodeState.ts";
import { LINK_READS, UpstreamNode } from "../../../src/nodes/upstreamNode.ts";
import { silent } from "../builders/silent.ts";
import type { FakeBlock, FakeChain } from "../fakes/fakeChain.ts";

const encoder = new TextEncoder();

/** A node without a network, for tests with a fake clock. It answers eth_getBlockByNumber from a fake chain at once. */
export class ChainNode extends UpstreamNode {
  /** Number of calls; each item of a batch counts. */
  calls = 0;
  /** The chain that it answers from; can be replaced. */
  chain: FakeChain;
  /** Blocks behind the chain's end. */
  lag = 0;
  /** Blocks of the finalized block below the newest. */
  finalizedDepth = 8;
  height: number | undefined;
  down = false;
  /** Connections are refused. */
  refuses = false;
  /** Called before each response. It may throw the error of a call. */
  onCall: (call: Call) => void = () => undefined;
  override readonly linkReads: BackOff;
  #isAvailable = true;

  constructor(name: string, chain: FakeChain, origin: string, nowMs?: () => number) {
    const clock = nowMs && { nowMs, sleep: async () => undefined };
    super({ name, origin, url: `http://${name}.test:8545` }, { chain: "test", clock }, silent());
    this.chain = chain;
    this.linkReads = new BackOff({ ...LINK_READS, ...(nowMs && { nowMs }) });
    this.identity.isIdentified = true;
    // Tests replace these methods by functions that call the former ones.
    this.send = this.send.bind(this);
    this.batch = this.batch.bind(this);
  }

  override get available(): boolean {
    return this.#isAvailable;
  }

  override set available(value: boolean) {
    this.#isAvailable = value;
  }

  override get isConnectable(): boolean {
    return !this.refuses;
  }

  override get use(): Use {
    return this.#isAvailable ? "yes" : "lastResort";
  }

  override recordWrongAnswer(): void {}

  override async send(call: Call, _scope?: CallScope): Promise<Uint8Array> {
    const { method, params } = call;
    const [tag] = params;
    this.calls += 1;
    this.onCall(call);
    if (this.down || this.refuses) {
      throw new NodeError("unreachable", this.name, "down");
    }
    if (method === "eth_chainId") {
      return encoder.encode(JSON.stringify(`0x${this.chain.chainId.toString(16)}`));
    }
    const found = method === "eth_getBlockByHash" ? this.chain.byHash(tag) : this.#block(tag);
    return encoder.encode(JSON.stringify(found?.json ?? null));
  }

  override probe(calls: readonly Call[], scope: CallScope): Promise<(RpcResponse | NodeError)[]> {
    return this.batch(calls, scope);
  }

  override batch(calls: readonly Call[], scope: CallScope): Promise<(RpcResponse | NodeError)[]> {
    return Promise.all(
      calls.map((call) =>
        this.send(call, scope).then(
          (body) => ({ body, status: {} }),
          (error: NodeError) => error,
        ),
      ),
    );
  }

  override async request(request: RpcRequest, context: Context): Promise<RpcResponse> {
    return { body: await this.send(request, context), status: {} };
  }

  #block(tag: unknown): FakeBlock | undefined {
    const top = Math.max(0, this.height ?? this.chain.blocks.length - 1 - this.lag);
    const depths: Record<string, number> = { latest: 0, safe: 4, finalized: this.finalizedDepth };
    const depth = depths[String(tag)];
    const number = depth === undefined ? Number(tag) : Math.max(0, top - depth);
    return number <= top ? this.chain.blocks[number] : undefined;
  }
}

export const createChainNode = (name: string, chain: FakeChain, origin = name, nowMs?: () => number): ChainNode =>
  new ChainNode(name, chain, origin, nowMs);
