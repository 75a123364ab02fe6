import { createService } from "../../support/servers/service.ts";

/** A chain in front of a node of `walletNode.ts`. */
export interface WalletChain {
  readonly name: string;
  readonly nodeUrl: string;
  readonly forks: "amsterdam" | "prague";
  readonly state: object;
}

/** A complete forebay of these chains, in a process of its own. It sends its port. */
export interface WalletServiceOptions {
  readonly chains: readonly WalletChain[];
  readonly blockMs: number;
}

process.once("message", async ({ chains, blockMs }: WalletServiceOptions) => {
  const { url } = await createService(
    chains.map(({ name, nodeUrl, forks, state }) => ({
      ...{ name, nodes: [{ url: nodeUrl }], forks, blockTimeMs: blockMs, state },
    })),
  );
  process.send?.(Number(new URL(url).port));
});
process.on("disconnect", () => process.exit());
