import assert from "node:assert/strict";
import { test } from "node:test";
import { originOf, PROVIDERS } from "../../src/config/providers.ts";

test("a node's origin is its provider, by configuration, by host, or else host and port", () => {
  assert.equal(originOf({ provider: "acme", url: "https://lb.drpc.org/ogrpc" }), "acme");
  assert.equal(originOf({ url: "https://opt-mainnet.g.alchemy.com/v2/k3y" }), "alchemy");
  assert.equal(originOf({ url: "https://base-rpc.publicnode.com" }), "publicnode");
  assert.equal(originOf({ url: "http://10.0.0.1:8545" }), "10.0.0.1:8545");
  assert.equal(originOf({ url: "https://lb.drpc.org.example/" }), "lb.drpc.org.example");
  assert.equal(originOf({ url: "https://rpc.example/lb.drpc.org" }), "rpc.example");
});

test("each known provider's host is recognised", () => {
  for (const [name, { url }] of Object.entries(PROVIDERS)) {
    const filled = url.replace("{network}", "base-mainnet").replace("{key}", "k3y");
    assert.equal(originOf({ url: filled }), name);
  }
});

test("a dot at the end of a host, or a port of a known provider, makes no other origin", () => {
  for (const host of ["lb.drpc.org", "lb.drpc.org.", "lb.drpc.org:8443", "lb.drpc.org.:443", "LB.dRPC.org.:8443"]) {
    assert.equal(originOf({ url: `https://${host}/ogrpc` }), "drpc", host);
  }
  for (const host of ["opt-mainnet.g.alchemy.com.", "opt-mainnet.g.alchemy.com:8443"]) {
    assert.equal(originOf({ url: `https://${host}/v2/k3y` }), "alchemy", host);
  }
  assert.equal(originOf({ url: "https://rpc.example./" }), "rpc.example");
  assert.equal(originOf({ url: "https://rpc.example.:8545/" }), originOf({ url: "https://rpc.example:8545/" }));
  assert.equal(originOf({ url: "http://[::1]:8545" }), "[::1]:8545");
});
