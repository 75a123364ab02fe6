import { isDeepStrictEqual } from "node:util";
import type { ChainConfig } from "../config/schema.ts";
import { nodeName } from "../nodes/nodeConfig.ts";
import type { ValueStore } from "../state/store/valueStore.ts";
import type { WriteSetSourcesOptions } from "./createWriteSetSources.ts";

/** A chain that replaces another one waits for the blocks of its known state for this time. */
const LINK_MS = 2_000;

type Followed = Pick<WriteSetSourcesOptions, "config" | "upstreams" | "views" | "signal">;

/** A header with unknown fields ends the known rules. The newer chain may not have seen the first of them. */
const rulesOf = ({ views: { forks } }: Followed): unknown => forks && { ...forks, unknownFrom: undefined };

/** Returns whether the known state of one chain holds for the chain that replaces it: same chain, rules and options. */
export const mayGoOn = (before: Followed, next: Followed): boolean =>
  isDeepStrictEqual(before.upstreams.genesis, next.upstreams.genesis) &&
  isDeepStrictEqual(rulesOf(before), rulesOf(next)) &&
  isDeepStrictEqual(before.config.state, next.config.state);

/** Returns the names of the nodes that the next configuration does not have, or that have another URL there. */
export const removedNodes = (before: ChainConfig, next: ChainConfig): readonly string[] => {
  const urls = new Map(next.nodes.map((node, index) => [nodeName(node, index), node.url]));
  return before.nodes.flatMap((node, index) => {
    const name = nodeName(node, index);
    return urls.get(name) === node.url ? [] : [name];
  });
};

/** Waits until the newest block of the values is in the ring of the next chain, which begins with one block. */
export const untilLinked = async (
  { head }: Pick<ValueStore, "head">,
  { upstreams: { heads }, signal }: Followed,
): Promise<void> => {
  heads.markActive();
  const ending = AbortSignal.any([signal, AbortSignal.timeout(LINK_MS)]);
  while (head !== undefined && (heads.current()?.oldest ?? 0n) > head.number && !ending.aborted) {
    await heads.next(ending).catch(() => undefined);
  }
};
