import type { BlockId, HeadChange, RingBlock } from "../core/heads.ts";
import type { RpcError } from "../jsonrpc/rpcError.ts";
import type { UpstreamNode } from "../nodes/upstreamNode.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";

/** A node this far behind the served head is logged. The alert ForebayNodeLag has the same limit. */
const LAGGING_SECONDS = 30;

/** Sets the metrics and writes the log lines of one chain's heads. */
export class HeadReporter {
  readonly #chain: string;
  readonly #log: Telemetry["log"];
  readonly #metrics: Telemetry["metrics"];
  /** The nodes that were logged as behind. */
  readonly #lagging = new Set<string>();

  constructor(chain: string, { log, metrics }: Telemetry) {
    this.#chain = chain;
    this.#log = log;
    this.#metrics = metrics;
  }

  onChange({ heads, from }: HeadChange, nodes: readonly UpstreamNode[], blockTimeMs: number): void {
    const chain = this.#chain;
    const metrics = this.#metrics;
    metrics.head.set({ chain, tag: "latest" }, Number(heads.latest.number));
    for (const tag of ["safe", "finalized"] as const) {
      metrics.head.set({ chain, tag }, Number(heads[tag]?.number ?? 0n));
    }
    if (from.length > 0) {
      metrics.reorgDepth.observe({ chain }, from.length);
      this.#log.info({ chain, depth: from.length, head: heads.latest.number.toString() }, "reorganisation");
    }
    this.#measureLag(heads.latest, nodes, blockTimeMs);
  }

  /** A node reported a head of an idle chain, which is not served yet. `newest` is the highest of all nodes. */
  onRecorded(newest: BlockId, nodes: readonly UpstreamNode[], blockTimeMs: number): void {
    this.#metrics.head.set({ chain: this.#chain, tag: "latest" }, Number(newest.number));
    this.#measureLag(newest, nodes, blockTimeMs);
  }

  #measureLag(newest: BlockId, nodes: readonly UpstreamNode[], blockTimeMs: number): void {
    const chain = this.#chain;
    const metrics = this.#metrics;
    for (const node of nodes) {
      const { name, head, isResting } = node;
      // The heads of a node whose units are spent are not read.
      const lag = head === undefined || isResting ? 0 : Math.max(0, Number(newest.number - head));
      const lagSeconds = (lag * blockTimeMs) / 1_000;
      metrics.upstreamLagSeconds.set({ chain, node: name }, lagSeconds);
      this.#logLag(name, lag, lagSeconds);
    }
  }

  #logLag(node: string, blocks: number, seconds: number): void {
    if (this.#lagging.has(node) !== seconds > LAGGING_SECONDS) {
      const fields = { chain: this.#chain, node, blocks, seconds };
      if (this.#lagging.delete(node)) {
        this.#log.info(fields, "node is no longer behind the others");
      } else {
        this.#lagging.add(node);
        this.#log.warn(fields, "node is behind the others: it gets reads of old blocks only");
      }
    }
  }

  onPolled(newest: RingBlock | undefined): void {
    if (newest === undefined) {
      return;
    }
    const ageSeconds = Date.now() / 1000 - Number(newest.timestamp);
    this.#metrics.headAgeSeconds.set({ chain: this.#chain }, Math.max(0, ageSeconds));
  }

  onPushState({ name }: UpstreamNode, isPushed: boolean): void {
    this.#metrics.upstreamHeadsPolled.set({ chain: this.#chain, node: name }, isPushed ? 0 : 1);
    this.#log.info({ chain: this.#chain, node: name }, isPushed ? "new heads are pushed" : "new heads are polled");
  }

  onPushFault({ name }: UpstreamNode, fault: { readonly host: string; readonly reason: string }): void {
    this.#metrics.upstreamHeadsPolled.set({ chain: this.#chain, node: name }, 1);
    const fields = { chain: this.#chain, node: name, ...fault };
    this.#log.warn(fields, "the WebSocket of the node cannot be connected: its heads are polled");
  }

  onMovedBack({ number, hash }: BlockId): void {
    const fields = { chain: this.#chain, number: `${number}`, hash };
    this.#log.warn(fields, "head moves back: no node has the served one any more");
  }

  onContradiction(isContradicted: boolean): void {
    this.#metrics.headsContradicted.set({ chain: this.#chain }, isContradicted ? 1 : 0);
    if (isContradicted) {
      this.#log.warn(
        { chain: this.#chain },
        "origins have different blocks, and no majority: the preferred one decides",
      );
    } else {
      this.#log.info({ chain: this.#chain }, "origins agree on the head again");
    }
  }

  onExcluded({ name, host }: UpstreamNode, isExcluded: boolean): void {
    const labels = { chain: this.#chain, node: name };
    this.#metrics.upstreamHeadsExcluded.set(labels, isExcluded ? 1 : 0);
    if (isExcluded) {
      this.#log.warn({ ...labels, host }, "heads of the node are ignored: most origins have other blocks");
    } else {
      this.#log.info({ ...labels, host }, "heads of the node count again");
    }
  }

  onTagFault({ name, host }: UpstreamNode, tag: string, { code, message }: RpcError): void {
    const fields = { chain: this.#chain, node: name, host, tag, code, reason: message };
    this.#log.warn(fields, "node answers a tag with an error: the others report this block");
  }

  onListenerError(error: unknown): void {
    this.#log.error({ chain: this.#chain, err: error }, "a listener to heads failed");
  }
}
