import { lookup } from "node:dns/promises";
import { originOf } from "../config/providers.ts";
import type { ChainConfig } from "../config/schema.ts";
import type { CheckResult } from "./checkResult.ts";

interface HostOrigin {
  readonly host: string;
  readonly origin: string;
}

/** Returns the addresses of a host. None if it cannot be resolved: the check of its node says so. */
const addressesOf = async (host: string): Promise<readonly string[]> => {
  const found = await lookup(host.replace(/^\[|\]$/g, ""), { all: true }).catch(() => []);
  return found.map(({ address }) => address);
};

/** Warns of hosts of different origins that resolve to one address: one operator may run both, and would count twice. Never rejects. */
export const checkOrigins = async ({ name, nodes }: ChainConfig): Promise<readonly CheckResult[]> => {
  const byAddress = new Map<string, HostOrigin>();
  const texts = new Set<string>();
  for (const node of nodes) {
    const { hostname: host } = new URL(node.url);
    const origin = originOf(node);
    for (const address of await addressesOf(host)) {
      const other = byAddress.get(address);
      if (other !== undefined && other.host !== host && other.origin !== origin) {
        texts.add(`${other.host} and ${host} resolve to one address, and count as two origins`);
      }
      byAddress.set(address, other ?? { host, origin });
    }
  }
  return [...texts].map((text) => ({
    subject: `${name} heads`,
    level: "warn",
    text: `${text}: if one operator runs them, set the same nodes[].provider`,
  }));
};
