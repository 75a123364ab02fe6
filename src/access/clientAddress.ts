import { BlockList, isIP, isIPv6 } from "node:net";

const GROUPS = 8;
/** An IPv4 address in IPv6 form (RFC 4291, section 2.5.5.2). A port that listens on `::` reports IPv4 clients so. */
const MAPPED = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i;
const NETWORK_GROUPS = 4;

const groupsOf = (text: string): readonly string[] => (text === "" ? [] : text.split(":"));

/** Removes leading zeros, so that one network has one text. */
const plainGroup = (group: string): string => group.replace(/^0+(?=.)/, "");

/**
 * Returns the address by which a client is counted. An IPv6 /64 counts as one client (RFC 6177: a site has at least
 * a /64), and an IPv4 address in IPv6 form as IPv4.
 */
export const clientOfAddress = (address: string): string => {
  // Hot path: an IPv4 address has no colon.
  if (!address.includes(":") || !isIPv6(address)) {
    return address;
  }
  const mapped = MAPPED.exec(address)?.[1];
  if (mapped !== undefined) {
    return mapped;
  }
  const [head = "", tail] = address.split("::");
  const before = groupsOf(head);
  const after = groupsOf(tail ?? "");
  const zeros = tail === undefined ? 0 : Math.max(0, GROUPS - before.length - after.length);
  const groups = [...before, ...Array<string>(zeros).fill("0"), ...after];
  return `${groups.slice(0, NETWORK_GROUPS).map(plainGroup).join(":")}::/64`;
};

/** Some proxies add the port: `192.0.2.1:4711`, `[2001:db8::1]:4711`. */
const WITH_PORT = /^(?:\[([^\]]+)\](?::\d+)?|(\d+\.\d+\.\d+\.\d+):\d+)$/;

const normalize = (text: string): string | undefined => {
  const trimmed = text.trim();
  const [, six, four] = WITH_PORT.exec(trimmed) ?? [];
  const address = six ?? four ?? trimmed;
  const plain = MAPPED.exec(address)?.[1] ?? address;
  return isIP(plain) === 0 ? undefined : plain.toLowerCase();
};

const MAPPED_PREFIX = "::ffff:";

const MAX_PREFIX = { 4: 32, 6: 128 } as const;

interface Network {
  readonly address: string;
  readonly prefix: number;
  readonly family: "ipv4" | "ipv6";
}

/** Parses `10.0.0.0/8`, `2001:db8::/32` or a single address. Undefined for any other text. */
export const parseNetwork = (text: string): Network | undefined => {
  const [address = "", prefix, ...rest] = text.split("/");
  const version = isIP(address);
  if ((version !== 4 && version !== 6) || rest.length > 0) {
    return undefined;
  }
  const length = prefix === undefined ? MAX_PREFIX[version] : Number(prefix);
  if ((prefix !== undefined && !/^\d{1,3}$/.test(prefix)) || length > MAX_PREFIX[version]) {
    return undefined;
  }
  return { address, prefix: length, family: `ipv${version}` };
};

/** Removes the prefix of an IPv4 address in IPv6 form, which the operating system reports on a dual-stack port. */
const plainAddress = (remote: string): string =>
  remote.startsWith(MAPPED_PREFIX) ? remote.slice(MAPPED_PREFIX.length) : remote.toLowerCase();

/** Creates the check whether an address is in one of these networks. */
export const createTrustedProxyCheck = (networks: readonly string[]): ((address: string) => boolean) => {
  const trusted = new BlockList();
  for (const network of networks.map(parseNetwork)) {
    if (network !== undefined) {
      trusted.addSubnet(network.address, network.prefix, network.family);
    }
  }
  return (remote) => {
    const address = plainAddress(remote);
    return trusted.check(address, isIP(address) === 6 ? "ipv6" : "ipv4");
  };
};

/**
 * Creates the function that finds the client's address. It reads `X-Forwarded-For` from the right.
 * The machine to the right of an entry wrote it. An entry is trusted if that machine is a trusted proxy.
 * Any other machine can write any text into the header.
 */
export const createTrustedProxies = (
  networks: readonly string[],
): ((remote: string, forwarded: string | undefined) => string) => {
  const isTrusted = createTrustedProxyCheck(networks);

  return (remote, forwarded) => {
    // Hot path: the operating system's address needs no parsing, except for the IPv4-mapped form.
    let address = plainAddress(remote);
    if (networks.length === 0 || forwarded === undefined) {
      return address;
    }
    for (const entry of forwarded.split(",").reverse()) {
      if (!isTrusted(address)) {
        return address;
      }
      const before = normalize(entry);
      if (before === undefined) {
        return address;
      }
      address = before;
    }
    return address;
  };
};
