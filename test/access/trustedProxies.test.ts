import assert from "node:assert/strict";
import { test } from "node:test";
import { createTrustedProxies, parseNetwork } from "../../src/access/clientAddress.ts";

test("X-Forwarded-For is read from the right through trusted proxies", () => {
  const addressOf = createTrustedProxies(["10.0.0.0/8", "2001:db8::/32", "192.0.2.7"]);
  const cases: readonly (readonly [remote: string, forwarded: string | undefined, address: string])[] = [
    ["10.1.2.3", "203.0.113.5", "203.0.113.5"],
    ["10.1.2.3", undefined, "10.1.2.3"],
    // Addresses to the left are from the client itself, and are ignored.
    ["10.1.2.3", "1.1.1.1, 203.0.113.5, 10.9.9.9", "203.0.113.5"],
    ["203.0.113.9", "1.1.1.1", "203.0.113.9"],
    ["::ffff:10.1.2.3", "203.0.113.5", "203.0.113.5"],
    ["2001:DB8::1", "2001:db9::2", "2001:db9::2"],
    ["192.0.2.7", "203.0.113.5:4711", "203.0.113.5"],
    ["192.0.2.7", "[2001:db9::5]:4711", "2001:db9::5"],
    ["192.0.2.8", "203.0.113.5", "192.0.2.8"],
    ["10.1.2.3", "203.0.113.5, unknown", "10.1.2.3"],
    ["10.1.2.3", "10.0.0.1,10.0.0.2", "10.0.0.1"],
  ];
  for (const [remote, forwarded, address] of cases) {
    assert.equal(addressOf(remote, forwarded), address, `${remote} <- ${forwarded}`);
  }
});

test("without trusted proxies the header is ignored", () => {
  assert.equal(createTrustedProxies([])("10.1.2.3", "203.0.113.5"), "10.1.2.3");
});

test("networks are addresses with or without a prefix length", () => {
  for (const good of ["10.0.0.0/8", "0.0.0.0/0", "::/0", "2001:db8::1", "127.0.0.1/32"]) {
    assert.ok(parseNetwork(good), good);
  }
  for (const bad of ["10.0.0/8", "10.0.0.0/33", "10.0.0.0/", "10.0.0.0/8/8", "::1/129", "proxy.example", ""]) {
    assert.equal(parseNetwork(bad), undefined, bad);
  }
});
