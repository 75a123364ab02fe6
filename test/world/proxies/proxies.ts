import { firstResult } from "../../bench/support/peers/program.ts";
import { createForebayProxy } from "./forebayProxy.ts";
import type { TestedProxy } from "./proxy.ts";
import { nginxProxy, programProxy } from "./serverProxy.ts";
import { TRUTH_PROGRAMS } from "./templates.ts";

/** Time in which a user starts a proxy in front of the printed nodes. */
const URL_WAIT_MS = 600_000;
const never = new Promise<never>(() => {});

/** A proxy that the user starts, once the URLs of the nodes are printed. */
const urlProxy = (url: string): TestedProxy => ({
  name: url,
  version: "unknown",
  isForeign: true,
  offers: new Set(),
  start: async (_, { nodeUrls }) => {
    console.error(`nodes: ${nodeUrls.join(" ")}`);
    console.error(`waiting until ${url} answers`);
    await firstResult(url, never, URL_WAIT_MS);
    return { instances: () => [{ label: url, url }], restart: async () => undefined };
  },
  template: () => `chain id 1, three nodes, a block a second; the nodes are printed`,
});

/** Returns the proxy of a name. Undefined if there is none of it, or if its binary is missing. */
export const proxyOf = (name: string, binary: string | undefined): TestedProxy | undefined => {
  if (name === "forebay") {
    return createForebayProxy({ planted: process.env.FAULT });
  }
  if (name === "nginx") {
    return nginxProxy();
  }
  if (/^https?:/.test(name)) {
    return urlProxy(name);
  }
  const program = TRUTH_PROGRAMS.find((each) => each.name === name);
  return program === undefined || binary === undefined ? undefined : programProxy(program, binary);
};
