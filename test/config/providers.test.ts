import assert from "node:assert/strict";
import { test } from "node:test";
import { createProviderChains } from "../../src/config/providerChains.ts";
import { CHAIN_IDS, PROVIDERS } from "../../src/config/providers.ts";
import { readArguments, readConfig } from "../../src/config/readConfig.ts";

test("one line describes several chains at a provider, with chain ids and WebSockets", () => {
  const { chains } = readConfig(readArguments(["--provider", "alchemy:k3y", "--chain", "op,base,unichain"], {}), {});
  assert.deepEqual(
    chains.map(({ name, chainId, nodes }) => [name, chainId, nodes[0]?.url, nodes[0]?.wsUrl]),
    [
      ["op", 10, "https://opt-mainnet.g.alchemy.com/v2/k3y", "wss://opt-mainnet.g.alchemy.com/v2/k3y"],
      ["base", 8453, "https://base-mainnet.g.alchemy.com/v2/k3y", "wss://base-mainnet.g.alchemy.com/v2/k3y"],
      ["unichain", 130, "https://unichain-mainnet.g.alchemy.com/v2/k3y", "wss://unichain-mainnet.g.alchemy.com/v2/k3y"],
    ],
  );
});

test("several providers are the nodes of each chain that they have", () => {
  const chains = createProviderChains(["drpc:a b", "infura:k", "publicnode"], ["op", "unichain"]);
  assert.deepEqual(
    chains.map(({ nodes }) => nodes.map(({ name, url }) => [name, url])),
    [
      [
        ["drpc", "https://lb.drpc.org/ogrpc?network=optimism&dkey=a%20b"],
        ["infura", "https://optimism-mainnet.infura.io/v3/k"],
        ["publicnode", "https://optimism-rpc.publicnode.com"],
      ],
      [["drpc", "https://lb.drpc.org/ogrpc?network=unichain&dkey=a%20b"]],
    ],
  );
});

test("an unknown provider or chain, a missing key or chain, and a chain that no provider has are named", () => {
  const cases: readonly (readonly [providers: readonly string[], chains: readonly string[], reason: RegExp])[] = [
    [["acme:s3cret"], ["op"], /^--provider: "acme" is not known; providers: alchemy, /],
    [["alchemy:s3cret"], ["opt"], /^--chain: "opt" is not known; chains: ethereum, op, /],
    [["alchemy"], ["op"], /^--provider: alchemy needs a key: alchemy:KEY$/],
    [["alchemy:s3cret"], [], /^--provider needs --chain/],
    [["infura:s3cret"], ["unichain"], /^--chain: no provider of --provider has unichain$/],
  ];
  for (const [providers, chains, reason] of cases) {
    assert.throws(
      () => createProviderChains(providers, chains),
      ({ message }: Error) => reason.test(message) && !message.includes("s3cret"),
    );
  }
});

test("every row has valid URLs for each of its chains, a source and a date", () => {
  assert.ok(Object.keys(PROVIDERS).length >= 10);
  for (const [name, provider] of Object.entries(PROVIDERS)) {
    const chains = Object.keys(CHAIN_IDS).filter((chain) => Object.hasOwn(provider.networks, chain));
    assert.equal(chains.length, Object.keys(provider.networks).length, name);
    const created = createProviderChains([provider.isPublic ? name : `${name}:key`], chains);
    for (const { nodes } of created) {
      for (const { url, wsUrl } of nodes) {
        assert.equal(new URL(url).protocol, "https:", url);
        assert.ok(wsUrl === undefined || new URL(wsUrl).protocol === "wss:");
        assert.ok(!url.includes("{"), url);
      }
    }
    assert.ok(provider.source !== "" && provider.billing !== "");
    assert.match(provider.checked, /^\d{4}-\d{2}-\d{2}$/);
  }
});
