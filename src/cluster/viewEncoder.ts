import { isDeepStrictEqual } from "node:util";
import { serialize } from "node:v8";
import type { HeadChange, Heads } from "../core/heads.ts";
import type { PendingChange, PendingView } from "../core/view.ts";
import type { UpstreamNode } from "../nodes/upstreamNode.ts";
import type { ChainInfo, NodeFacts, PlainChange, ViewUpdate } from "./chainProtocol.ts";
import { diffHeads } from "./headsUpdate.ts";
import { PendingEncoder } from "./pendingUpdate.ts";

/** A change that the next round publishes. `facts`: the chain has its genesis, a first head and its rules, or its state is followed. */
export type ViewChange = { readonly heads: HeadChange } | { readonly pending: PendingChange } | "facts";

/** Pending views that requests of serving processes may name. At 5 views a second, some 50 s. */
const MAX_VIEWS = 256;

/** Encodes the views of a chain for the serving processes, as the difference from what was encoded before. */
export class ViewEncoder {
  readonly #nodes: readonly UpstreamNode[];
  readonly #info: () => ChainInfo;
  readonly #pendingEncoder = new PendingEncoder();
  readonly #recentViews = new Map<string, PendingView>();
  #heads: Heads | undefined;
  #pending: PendingView | undefined;
  #sentNodes: readonly NodeFacts[] = [];

  constructor(nodes: readonly UpstreamNode[], info: () => ChainInfo) {
    this.#nodes = nodes;
    this.#info = info;
  }

  /** Whether a head was encoded. */
  get hasHeads(): boolean {
    return this.#heads !== undefined;
  }

  /** Returns a pending view that was encoded, if it is one of the newest. */
  recentView(id: string): PendingView | undefined {
    return this.#recentViews.get(id);
  }

  encode(changes: readonly ViewChange[]): Uint8Array {
    const plain = changes.flatMap((change): PlainChange[] => {
      if (change === "facts") {
        return [];
      }
      return ["heads" in change ? this.#encodeHeads(change.heads) : this.#encodePending(change.pending)].flatMap(
        (each) => each ?? [],
      );
    });
    this.#sentNodes = this.#nodeFacts();
    return this.#serialize(plain);
  }

  /** Encodes everything for a process that has nothing yet. Undefined before the first head. */
  snapshot(): Uint8Array | undefined {
    const heads = this.#heads;
    if (heads === undefined) {
      return undefined;
    }
    const changes: PlainChange[] = [{ heads: diffHeads(undefined, { heads, from: [], to: [] }) }];
    if (this.#pending !== undefined) {
      changes.push({ pending: this.#pendingEncoder.encode(this.#pending, { extended: [], removed: [] }) });
    }
    return this.#serialize(changes);
  }

  /** Returns the facts of the nodes if they differ from the last ones. */
  takeChangedNodes(): readonly NodeFacts[] | undefined {
    const nodes = this.#nodeFacts();
    if (isDeepStrictEqual(nodes, this.#sentNodes)) {
      return undefined;
    }
    this.#sentNodes = nodes;
    return nodes;
  }

  #encodeHeads(change: HeadChange): PlainChange {
    const heads = diffHeads(this.#heads, change);
    this.#heads = change.heads;
    return { heads };
  }

  #encodePending(change: PendingChange): PlainChange | undefined {
    const { pending } = change.view;
    if (pending === undefined) {
      return undefined;
    }
    const update = this.#pendingEncoder.encode(pending, change, this.#pending);
    this.#pending = pending;
    this.#recordView(pending);
    return { pending: update };
  }

  #recordView(view: PendingView): void {
    this.#recentViews.delete(view.id);
    this.#recentViews.set(view.id, view);
    for (const id of [...this.#recentViews.keys()].slice(0, -MAX_VIEWS)) {
      this.#recentViews.delete(id);
    }
  }

  #serialize(changes: readonly PlainChange[]): Uint8Array {
    const update: ViewUpdate = { changes, info: this.#info(), nodes: this.#nodeFacts() };
    return serialize(update);
  }

  #nodeFacts(): readonly NodeFacts[] {
    return this.#nodes.map(({ name, identity, isCordoned, head, health: { headHash } }) => ({
      name,
      identified: identity.isIdentified,
      isCordoned,
      head: head === undefined || headHash === undefined ? undefined : { number: head, hash: headHash },
    }));
  }
}
