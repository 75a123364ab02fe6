import type { FilterStore } from "../subscriptions/filterStore.ts";
import type { MainChannel } from "./chainCopy.ts";
import type { FilterCall } from "./chainProtocol.ts";

/** Stores filters in the main process, so that clients can poll them through any serving process. */
export const createRemoteFilters = (chain: string, main: MainChannel): FilterStore => {
  const method =
    <N extends keyof FilterStore>(name: N) =>
    (...args: Parameters<FilterStore[N]>): ReturnType<FilterStore[N]> =>
      main.call("filter", { chain, name, args } as { readonly chain: string } & FilterCall) as ReturnType<
        FilterStore[N]
      >;
  return {
    add: method("add"),
    read: method("read"),
    reported: method("reported"),
    advance: method("advance"),
    remove: method("remove"),
  };
};
