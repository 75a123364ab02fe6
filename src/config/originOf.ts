import { PROVIDERS } from "./providers.ts";

/** The part of a provider's URL that comes before, and after, the name of the network. */
const hostParts = (url: string): readonly [string, string] => {
  const [, authority = ""] = /^https:\/\/([^/]+)/.exec(url) ?? [];
  const [before = "", after] = authority.split("{network}");
  return [before, after ?? ""];
};

const HOSTS = Object.entries(PROVIDERS).map(([name, { url }]) => ({ name, parts: hostParts(url) }));

const providerOf = (host: string): string | undefined =>
  HOSTS.find(({ parts: [before, after] }) =>
    after === "" ? host === before : host.startsWith(before) && host.endsWith(after),
  )?.name;

/** Returns who runs a node: the configured provider, else the name of a known provider, else host and port of the URL. */
export const originOf = ({
  provider,
  url,
}: {
  readonly provider?: string | undefined;
  readonly url: string;
}): string => {
  const { host } = new URL(url);
  return provider ?? providerOf(host) ?? host;
};
