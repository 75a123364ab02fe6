import { createHash } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import type { BlockId, Heads } from "../core/heads.ts";
import { timeoutSignal } from "../core/lazySignal.ts";
import { nodeName } from "../nodes/nodeConfig.ts";
import type { RowsOwner } from "./rows/stateRows.ts";
import type { StateChain, StateParts } from "./stateParts.ts";

/** A chain that replaces another one waits for the blocks of its known state for this time. */
const LINK_MS = 2_000;

interface Followed extends Pick<StateParts, "config" | "upstreams" | "signal"> {
  readonly served: Pick<StateChain, "forks">;
}

/** A header with unknown fields ends the known rules. The newer chain may not have seen the first of them. */
const rulesOf = ({ served: { forks } }: Pick<Followed, "served">): unknown =>
  forks && { ...forks, unknownFrom: undefined };

/** Returns whether the known state of one chain holds for the chain that replaces it: same chain, rules and options, and all its nodes. */
export const mayGoOn = (before: Followed, next: Followed): boolean =>
  isDeepStrictEqual(before.upstreams.genesis, next.upstreams.genesis) &&
  isDeepStrictEqual(rulesOf(before), rulesOf(next)) &&
  isDeepStrictEqual(before.config.state, next.config.state) &&
  before.config.reads.agree === next.config.reads.agree &&
  haveAllNodes(before.config, next.config);

/** Whether the next configuration has all nodes. Nobody knows which values are of a node that is gone, or has another URL. */
const haveAllNodes = (before: StateParts["config"], next: StateParts["config"]): boolean => {
  const urls = new Map(next.nodes.map((node, index) => [nodeName(node, index), node.url]));
  return before.nodes.every((node, index) => urls.get(nodeName(node, index)) === node.url);
};

const digest = (text: string): string => createHash("sha256").update(text).digest("hex").slice(0, 32);

const toText = (_: string, value: unknown): unknown => (typeof value === "bigint" ? String(value) : value);

/** Returns what stored rows say about the chain for which they hold. */
export const rowsOwner = (followed: Followed): RowsOwner => {
  const { config, upstreams } = followed;
  const { chainId, hash } = upstreams.genesis;
  const options = { source: config.state.source, agree: config.reads.agree };
  return {
    name: `${config.name}:${chainId}:${hash}`,
    rules: digest(JSON.stringify([rulesOf(followed) ?? null, options], toText)),
    nodes: config.nodes.map((node, index) => digest(`${nodeName(node, index)} ${node.url}`)),
  };
};

/** Waits until the ring of a chain, which begins with one block, contains a known block or goes beyond it. */
export const untilLinked = async (
  known: BlockId | undefined,
  { upstreams: { heads }, signal }: Pick<Followed, "upstreams" | "signal">,
): Promise<void> => {
  heads.markActive();
  const ending = AbortSignal.any([signal, timeoutSignal(LINK_MS)]);
  const isLinked = ({ oldest, latest }: Heads): boolean =>
    known === undefined || (oldest <= known.number && latest.number >= known.number);
  for (let current = heads.current(); !ending.aborted && !(current && isLinked(current)); current = heads.current()) {
    if (known !== undefined) {
      void heads.reach({ from: known.number, to: known.number });
    }
    await heads.next(ending).catch(() => undefined);
  }
};
