import type { Anvil } from "../../devnet/anvil.ts";
import { until } from "../clients/until.ts";
import type { Service } from "./service.ts";

/**
 * Makes the newest block of a chain the served head. A refresh ends after 500 ms, also if the polls of a busy machine have not.
 * One that runs already may have polled an older block.
 */
export const followHead = (
  { chains }: Pick<Service, "chains">,
  { head }: { readonly head: { readonly hash: string } },
): Promise<void> =>
  until(
    async () => (await chains[0]?.upstreams.heads.refresh())?.latest.hash === head.hash,
    "the newest block is the served head",
  );

/** Makes the newest block of anvil the served head. */
export const followAnvil = async (service: Pick<Service, "chains">, anvil: Pick<Anvil, "call">): Promise<void> => {
  const head = (await anvil.call("eth_getBlockByNumber", "latest", false)) as { readonly hash: string };
  await followHead(service, { head });
};
