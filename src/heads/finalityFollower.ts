import type { Clock } from "../core/clock.ts";
import { type BlockId, isCanonicalIn } from "../core/heads.ts";
import { NodeError, type NodeErrorKind } from "../core/node.ts";
import { BackOff } from "../nodes/backOff.ts";
import { blockScope, readBlock, readBlocks } from "../nodes/blockReads.ts";
import type { UpstreamNode } from "../nodes/upstreamNode.ts";
import type { Background } from "./blockBackfill.ts";
import type { CanonicalChain, Finality } from "./canonicalChain.ts";
import { hasBlock } from "./chainPath.ts";
import { aloneWaitMs } from "./decideHead.ts";
import type { HeadReporter } from "./headReporter.ts";

export interface FinalityFollowerOptions extends Background {
  readonly clock: Clock;
  readonly blockTimeMs: () => number;
  readonly finality: Finality;
  /** One node of each origin that can be connected to, and the number of them that must report a block as safe or final. */
  readonly reporters: () => { readonly nodes: readonly UpstreamNode[]; readonly required: number };
  readonly reporter: Pick<HeadReporter, "onTagFault">;
}

/** A block that a node reported as safe or final. */
interface Report extends BlockId {
  readonly node: UpstreamNode;
}

const TAGS = ["safe", "finalized"] as const;

const PERIOD_MS = 12_000;
/**
 * While a chain is idle, a node gets up to 50 requests a minute in total.
 * On a chain with 2 s blocks these are 30 for latest, 5 for finality and 5 for the backfill.
 */
const IDLE_PERIOD_MS = 24_000;
const FIRST_PERIOD_MS = 500;
const BACKOFF = { failures: 1, openMs: PERIOD_MS, maxOpenMs: 2 * PERIOD_MS };

/** The errors of a node that has no such block or does not know the tag. Any other error says nothing about it. */
const NO_BLOCK: ReadonlySet<NodeErrorKind> = new Set([
  "missingData",
  "tagUnsupported",
  "invalidParams",
  "unsupportedMethod",
]);

/** The errors of a node that may respond to the next request. They say nothing about the tag. */
const PASSING: ReadonlySet<NodeErrorKind> = new Set([
  "billing",
  "rateLimited",
  "overloaded",
  "timeout",
  "rejected",
  "cancelled",
  "unauthorized",
  "unreachable",
]);

type Tag = (typeof TAGS)[number];
type TagResponse = BlockId | NodeError | undefined;

/** What a node reports for each of TAGS. */
type Tags = readonly TagResponse[];

const readTags = async (node: UpstreamNode, tags: readonly Tag[], signal: AbortSignal): Promise<Tags> => {
  try {
    const blocks = await readBlocks(node, tags, blockScope(signal));
    return blocks.map((block) => (block instanceof NodeError ? block : block?.block));
  } catch (error) {
    const fault = error instanceof NodeError ? error : new NodeError("other", node.name, String(error));
    return tags.map(() => fault);
  }
};

/** A tag for which a node is asked, with its last response. A tag that it answers with errors is read at growing intervals. */
class AskedTag {
  readonly tag: Tag;
  readonly backOff: BackOff;
  readonly #nowMs: () => number;
  last: TagResponse;
  /** True once the node has reported a block, undefined before its first response. */
  #hasReported: boolean | undefined;
  /** The time of the first error since the last response, and whether it was told. */
  #failingSinceMs: number | undefined;
  #isTold = false;

  constructor(tag: Tag, nowMs: () => number) {
    this.tag = tag;
    this.#nowMs = nowMs;
    this.backOff = new BackOff({ ...BACKOFF, nowMs });
  }

  record(response: TagResponse): void {
    this.last = response;
    if (response instanceof NodeError && !NO_BLOCK.has(response.kind)) {
      this.#failingSinceMs ??= this.#nowMs();
      this.backOff.failed();
      return;
    }
    this.backOff.succeeded();
    this.#hasReported = (response !== undefined && !(response instanceof NodeError)) || this.#hasReported === true;
    this.#failingSinceMs = undefined;
    this.#isTold = false;
  }

  /** The node has reported a block, or has not responded yet. */
  get mayReport(): boolean {
    return this.#hasReported !== false;
  }

  /** Whether the node has responded with errors alone for this time. */
  isFailing(forMs: number): boolean {
    return this.#failingSinceMs !== undefined && this.#nowMs() - this.#failingSinceMs >= forMs;
  }

  /** Returns the error of a node that is not awaited any more, once. */
  takeFault(forMs: number): NodeError | undefined {
    const { last } = this;
    if (!(last instanceof NodeError) || PASSING.has(last.kind) || this.#isTold || !this.isFailing(forMs)) {
      return undefined;
    }
    this.#isTold = true;
    return last;
  }
}

/**
 * Rule 9. Reads safe and finalized blocks in the background: the highest that enough origins report at or above. If the operator has set a
 * finality depth, it reads only the block at that depth.
 */
export class FinalityFollower {
  readonly #options: FinalityFollowerOptions;
  readonly #asked = new Map<UpstreamNode, readonly AskedTag[]>();

  constructor(options: FinalityFollowerOptions) {
    this.#options = options;
    void this.#readOnSchedule();
  }

  async read(): Promise<void> {
    const { canonical, finality, source, signal } = this.#options;
    const { ring, heads } = canonical;
    if (!ring || !heads) {
      return;
    }
    if (finality.depth === undefined) {
      await this.#readTags(canonical);
      return;
    }
    const node = source();
    const number = ring.latest.number - BigInt(finality.depth);
    if (node && heads.finalized === undefined && number >= 0n) {
      const block = (await readBlock(node, number, signal))?.block;
      canonical.setTags({ safe: block, finalized: block });
    }
  }

  async #readOnSchedule(): Promise<void> {
    const { canonical, pause, signal, isIdle } = this.#options;
    while (!signal.aborted) {
      await this.read().catch(() => undefined);
      const periodMs = canonical.ring ? (isIdle() ? IDLE_PERIOD_MS : PERIOD_MS) : FIRST_PERIOD_MS;
      await pause(periodMs);
    }
  }

  async #readTags(canonical: CanonicalChain): Promise<void> {
    const { reporters, blockTimeMs, reporter } = this.#options;
    const { nodes, required } = reporters();
    const waitMs = aloneWaitMs(blockTimeMs());
    const asked = await Promise.all(nodes.map(async (node) => ({ node, tags: await this.#ask(node) })));
    const tags = await Promise.all(
      TAGS.map((tag, index) => {
        const ofTag = asked.flatMap(({ node, tags }) => {
          const each = tags[index];
          return each === undefined ? [] : [{ node, each }];
        });
        for (const { node, each } of ofTag) {
          const fault = each.takeFault(waitMs);
          if (fault !== undefined) {
            reporter.onTagFault(node, tag, fault);
          }
        }
        const reports = ofTag.flatMap(({ node, each: { last } }): Report[] =>
          last === undefined || last instanceof NodeError ? [] : [{ number: last.number, hash: last.hash, node }],
        );
        // Of three origins, one alone makes no block final.
        const counts = ofTag.filter(({ each }) => each.mayReport && (nodes.length > 2 || !each.isFailing(waitMs)));
        return this.#agreedTag(reports, Math.min(required, counts.length), canonical.heads?.[tag]);
      }),
    );
    const [safe, finalized] = tags;
    canonical.setTags({ safe, finalized });
  }

  /** Reads the tags of a node that are due. Between two reads, the last response counts. */
  async #ask(node: UpstreamNode): Promise<readonly AskedTag[]> {
    const { signal, clock } = this.#options;
    const asked = this.#asked.get(node) ?? TAGS.map((tag) => new AskedTag(tag, () => clock.nowMs()));
    this.#asked.set(node, asked);
    const due = asked.filter(({ backOff }) => backOff.available);
    for (const { backOff } of due) {
      backOff.begin();
    }
    const names = due.map(({ tag }) => tag);
    const responses = due.length === 0 ? [] : await readTags(node, names, signal);
    for (const [index, each] of due.entries()) {
      each.record(responses[index]);
    }
    return asked;
  }

  /** Returns the highest block that `required` origins report at or above, if it is above `before`. */
  async #agreedTag(
    reports: readonly Report[],
    required: number,
    before: BlockId | undefined,
  ): Promise<BlockId | undefined> {
    const { canonical, signal } = this.#options;
    const descending = [...reports].sort((a, b) => Number(b.number - a.number));
    for (const [index, report] of descending.entries()) {
      if (index + 1 < required || required === 0) {
        continue;
      }
      if (before !== undefined && report.number <= before.number) {
        return undefined;
      }
      // The ring has the hash of a recent block. Other origins must have an older one under the same hash.
      if (required === 1 || isCanonicalIn(canonical.ring, report)) {
        return report;
      }
      const has = await Promise.all(descending.slice(0, index + 1).map(({ node }) => hasBlock(node, report, signal)));
      if (has.filter((isIts) => isIts === true).length >= required) {
        return report;
      }
    }
    return undefined;
  }
}
