/** The end of a client that is an IPv6 network. */
const SUFFIX = "::/64";

/**
 * Returns the network that is counted together with others of one owner: of an IPv6 client its /48, which a site usually has
 * (RFC 6177). Any other client is its own network.
 */
export const networkOf = (clientId: string): string =>
  clientId.endsWith(SUFFIX)
    ? `${clientId.slice(0, clientId.lastIndexOf(":", clientId.length - SUFFIX.length - 1))}::/48`
    : clientId;
