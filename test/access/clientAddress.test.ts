import assert from "node:assert/strict";
import { test } from "node:test";
import { clientOfAddress } from "../../src/access/clientAddress.ts";
import { networkOf } from "../../src/limits/fairShares.ts";

test("an IPv4 address is one client, and an IPv6 /64 is one client", () => {
  for (const [address, client] of [
    ["203.0.113.5", "203.0.113.5"],
    ["unknown", "unknown"],
    ["2001:db8::1", "2001:db8:0:0::/64"],
    ["2001:db8:0:0:ffff::2", "2001:db8:0:0::/64"],
    ["2001:0db8:0000:0000:0:1:2:3", "2001:db8:0:0::/64"],
    ["2001:db8:0:1::", "2001:db8:0:1::/64"],
    ["::1", "0:0:0:0::/64"],
    ["::ffff:203.0.113.5", "203.0.113.5"],
    ["::FFFF:203.0.113.5", "203.0.113.5"],
  ] as const) {
    assert.equal(clientOfAddress(address), client, address);
  }
});

test("the clients of one IPv6 /48 are one network, and any other client is its own", () => {
  for (const [client, network] of [
    ["203.0.113.5", "203.0.113.5"],
    ["wallet", "wallet"],
    [clientOfAddress("2001:db8:7:1::1"), "2001:db8:7::/48"],
    [clientOfAddress("2001:db8:7:ffff::1"), "2001:db8:7::/48"],
    [clientOfAddress("2001:db8:8::1"), "2001:db8:8::/48"],
    [clientOfAddress("::1"), "0:0:0::/48"],
  ] as const) {
    assert.equal(networkOf(client), network, client);
  }
});
