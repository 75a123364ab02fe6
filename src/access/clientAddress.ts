import { isIPv6 } from "node:net";

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
