import type { Chain } from "../methods/method.ts";
import type { FilterStore } from "../subscriptions/filterStore.ts";
import type { ChainState } from "./chainState.ts";
import type { ChainViews } from "./chainViews.ts";
import type { ReadPipeline } from "./createReadPipeline.ts";
import type { ForwardedReasons } from "./forwardedReasons.ts";
import type { Upstreams } from "./upstreams.ts";

/** The views of one chain, as far as requests of clients use them. */
export interface ClientViews extends Omit<ChainViews, "execution" | "findExecuted" | "forks" | "systemContracts"> {
  readonly execution: Chain["execution"];
}

/** The sources of the answers of one chain. */
export interface ChainSources {
  readonly upstreams: Upstreams;
  readonly pipeline: ReadPipeline;
  readonly views: ClientViews;
  readonly state: { readonly reads: Chain["state"]; readonly callCache: Chain["callCache"] };
  /** Present in a process that follows the chain. */
  readonly knownState?: ChainState;
  /** The filters that are not in Redis. */
  readonly filters: FilterStore;
  /** Present in a serving process. Requests wait while it returns a promise. */
  readonly gate: { wait(): Promise<void> | undefined } | undefined;
  /** Why nodes answer calls that forebay could answer. Empty in a serving process: the main process knows them. */
  readonly forwarded: Pick<ForwardedReasons, "list">;
  close(): Promise<void>;
}
