import type { Clock } from "../core/clock.ts";
import type { BlockId } from "../core/heads.ts";
import { NodeError, type NodeErrorKind } from "../core/node.ts";
import { BackOff } from "../nodes/backOff.ts";
import { blockScope, readBlock, readBlocks } from "../nodes/blockReads.ts";
import type { UpstreamNode } from "../nodes/upstreamNode.ts";
import type { Background } from "./blockBackfill.ts";
import type { CanonicalChain, Finality } from "./canonicalChain.ts";
import { hasBlock } from "./chainPath.ts";
import { loneWaitMs } from "./decideHead.ts";
import type { HeadReporter } from "./headReporter.ts";

export interface FinalityFollowerOptions extends Background {
  readonly clock: Clock;
  readonly blockTimeMs: () => number;
  readonly finality: Finality;
  /** One node of each origin with a vote, and the number of them that must report a block as safe or final. */
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
const BACKOFF = { failures: 1, openMs: PERIOD_MS, maxOpenMs: 60_000 };

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

/** A tag for which a node was asked, with its last response. */
interface AskedTag {
  readonly tag: Tag;
  readonly breaker: BackOff;
  last: TagResponse;
}

const readTags = async (node: UpstreamNode, tags: readonly Tag[], signal: AbortSignal): Promise<Tags> => {
  try {
    const blocks = await readBlocks(node, tags, blockScope(signal));
    return blocks.map((block) => (block instanceof NodeError ? block : block?.block));
  } catch (error) {
    const fault = error instanceof NodeError ? error : new NodeError("other", node.name, String(error));
    return tags.map(() => fault);
  }
};

/** Which origins are awaited for one tag. */
class TagSupport {
  /** True once an origin has reported a block, undefined before its first response. */
  readonly #supports = new Map<string, boolean>();
  /** The time of an origin's first error since its last response, whether it was reported, and whether the origin had its time. */
  readonly #faults = new Map<string, { readonly sinceMs: number; isReported: boolean; isOver: boolean }>();

  /** Records what a node of an origin returned. Returns the error if the origin is not awaited any more, once. */
  record(
    origin: string,
    response: BlockId | NodeError | undefined,
    nowMs: number,
    waitMs: number,
  ): NodeError | undefined {
    if (!(response instanceof NodeError) || NO_BLOCK.has(response.kind)) {
      const hasBlock = response !== undefined && !(response instanceof NodeError);
      this.#supports.set(origin, hasBlock || (this.#supports.get(origin) ?? false));
      this.#faults.delete(origin);
      return undefined;
    }
    const fault = this.#faults.get(origin) ?? { sinceMs: nowMs, isReported: false, isOver: false };
    this.#faults.set(origin, fault);
    fault.isOver = nowMs - fault.sinceMs >= waitMs;
    if (PASSING.has(response.kind) || fault.isReported || !fault.isOver) {
      return undefined;
    }
    fault.isReported = true;
    return response;
  }

  /** Whether the origin has reported a block, or has not responded yet. */
  mayReport(origin: string): boolean {
    return this.#supports.get(origin) !== false;
  }

  /** Whether the origin may report a block, and has not responded with errors alone for its time. */
  isAwaited(origin: string): boolean {
    return this.mayReport(origin) && this.#faults.get(origin)?.isOver !== true;
  }
}

/**
 * Rule 9. Reads safe and finalized blocks in the background: the highest that enough origins report at or above. If the operator has set a
 * finality depth, it reads only the block at that depth.
 */
export class FinalityFollower {
  readonly #options: FinalityFollowerOptions;
  readonly #support = { safe: new TagSupport(), finalized: new TagSupport() };
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
    const { reporters, clock, blockTimeMs, reporter } = this.#options;
    const { nodes, required } = reporters();
    const responses = await Promise.all(nodes.map(async (node) => ({ node, tags: await this.#tagsOf(node) })));
    const tags = await Promise.all(
      TAGS.map((tag, index) => {
        const support = this.#support[tag];
        const reports = responses.flatMap(({ node, tags }): Report[] => {
          const response = tags[index];
          const fault = support.record(node.origin, response, clock.nowMs(), loneWaitMs(blockTimeMs()));
          if (fault !== undefined) {
            reporter.onTagFault(node, tag, fault);
          }
          return response === undefined || response instanceof NodeError
            ? []
            : [{ number: response.number, hash: response.hash, node }];
        });
        // Of three origins, one alone makes no block final.
        const counts = nodes.filter(({ origin }) =>
          nodes.length > 2 ? support.mayReport(origin) : support.isAwaited(origin),
        );
        return this.#agreedTag(reports, Math.min(required, counts.length), canonical.heads?.[tag]);
      }),
    );
    const [safe, finalized] = tags;
    canonical.setTags({ safe, finalized });
  }

  /** Reads the tags of a node. A tag that it answers with errors is read ever more seldom: in between, its last one counts. */
  async #tagsOf(node: UpstreamNode): Promise<Tags> {
    const { signal, clock } = this.#options;
    let asked = this.#asked.get(node);
    if (asked === undefined) {
      const nowMs = () => clock.nowMs();
      asked = TAGS.map((tag) => ({ tag, breaker: new BackOff({ ...BACKOFF, nowMs }), last: undefined }));
      this.#asked.set(node, asked);
    }
    const due = asked.filter(({ breaker }) => breaker.available);
    for (const { breaker } of due) {
      breaker.begin();
    }
    const responses =
      due.length === 0
        ? []
        : await readTags(
            node,
            due.map(({ tag }) => tag),
            signal,
          );
    for (const [index, each] of due.entries()) {
      each.last = responses[index];
      if (each.last instanceof NodeError && !NO_BLOCK.has(each.last.kind)) {
        each.breaker.failed();
      } else {
        each.breaker.succeeded();
      }
    }
    return asked.map(({ last }) => last);
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
      if (required === 1 || canonical.ring?.at(report.number)?.hash === report.hash) {
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
