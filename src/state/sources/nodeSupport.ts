import { LRUCache } from "lru-cache";
import { NodeError, type NodeErrorKind } from "../../core/node.ts";

/** Only one of several machines behind the URL may lack support, or an upgrade may add it, so that the mark expires. */
const UNSUPPORTED_MS = 600_000;
const MAX_NODES = 1_000;

const UNSUPPORTED_KINDS: ReadonlySet<NodeErrorKind> = new Set(["unsupportedMethod", "unauthorized", "billing"]);
const UNCLEAR_KINDS: ReadonlySet<NodeErrorKind> = new Set(["invalidParams", "other"]);
/** Texts of nodes without the tracer, or with the namespace `debug` switched off. */
const UNSUPPORTED_TEXT = /tracer|is not defined|diffmode|not (supported|available|enabled|allowed)|unknown field/i;

/** Whether a node's error shows that it does not support the request at all. */
export const isUnsupported = (error: unknown): boolean =>
  error instanceof NodeError &&
  (UNSUPPORTED_KINDS.has(error.kind) || (UNCLEAR_KINDS.has(error.kind) && UNSUPPORTED_TEXT.test(error.message)));

/** Facts about nodes, by name. Each fact is forgotten after ten minutes. */
export class NodeSupport<Fact extends string> {
  readonly #facts: LRUCache<string, Fact>;

  constructor(nowMs: () => number = () => performance.now()) {
    this.#facts = new LRUCache<string, Fact>({
      max: MAX_NODES,
      ttl: UNSUPPORTED_MS,
      ttlResolution: 0,
      perf: { now: nowMs },
    });
  }

  of(node: string): Fact | undefined {
    return this.#facts.get(node);
  }

  learn(node: string, fact: Fact): void {
    this.#facts.set(node, fact);
  }

  forget(node: string): void {
    this.#facts.delete(node);
  }
}
