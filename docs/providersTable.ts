import { PROVIDERS } from "../src/config/providers.ts";

/** Formats one row per provider. */
export const formatProvidersTable = (): string =>
  [
    "| Name | Chains | Endpoint | eth_getLogs | Billed in | Checked |",
    "|---|---|---|---|---|---|",
    ...Object.entries(PROVIDERS).map(([name, { url, networks, isPublic, maxLogBlocks, billing, source, checked }]) => {
      const limit = maxLogBlocks === undefined ? "learned" : `${maxLogBlocks.toLocaleString("en")} blocks`;
      const label = isPublic ? `${name} (public, no key)` : name;
      return `| ${label} | ${Object.keys(networks).join(", ")} | \`${url}\` | ${limit} | ${billing} | ${checked}, ${source} |`;
    }),
  ].join("\n");
