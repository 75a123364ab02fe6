import { firstResult } from "../../bench/support/peers/program.ts";
import { forebayProxy } from "./forebayProxy.ts";
import { plantedProxyOf } from "./plantedProxy.ts";
import type { TruthProxy } from "./proxy.ts";
import { nginxProxy, programProxy } from "./serverProxy.ts";
import { TRUTH_PROGRAMS } from "./templates.ts";

const PLANTED = "planted:";
/** Time in which a user starts a proxy in front of the printed nodes. */
const URL_WAIT_MS = 600_000;
const never = new Promise<never>(() => {});

/** A proxy that the user starts, once the URLs of the nodes are printed. */
const urlProxy = (url: string): TruthProxy => ({
  name: url,
  version: "unknown",
  isForeign: true,
  offers: new Set(),
  start: async (_, { nodeUrls }) => {
    console.error(`nodes: ${nodeUrls.join(" ")}`);
    console.error(`waiting until ${url} answers`);
    await firstResult(url, never, URL_WAIT_MS);
    return { urls: () => [url], restart: async () => undefined };
  },
  template: () => `chain id 1, three nodes, a block a second; the nodes are printed`,
});

/** Returns the proxy of a name. Undefined if there is none of it, or if its binary is missing. */
export const proxyOf = (name: string, binary: string | undefined): TruthProxy | undefined => {
  if (name === "forebay") {
    return forebayProxy;
  }
  if (name === "nginx") {
    return nginxProxy();
  }
  if (name.startsWith(PLANTED)) {
    return plantedProxyOf(name.slice(PLANTED.length));
  }
  if (/^https?:/.test(name)) {
    return urlProxy(name);
  }
  const program = TRUTH_PROGRAMS.find((each) => each.name === name);
  return program === undefined || binary === undefined ? undefined : programProxy(program, binary);
};
