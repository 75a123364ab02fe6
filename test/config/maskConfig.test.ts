import assert from "node:assert/strict";
import { test } from "node:test";
import { formatMasked } from "../../src/config/maskConfig.ts";
import { configSchema } from "../../src/config/schema.ts";

test("possible secrets are masked at any place; other values are shown", () => {
  const config = configSchema.parse({
    chains: [
      {
        name: "main",
        nodes: [
          {
            url: "https://user:s3cret@node.example:8080/v2/s3cret?key=s3cret",
            wsUrl: "wss://node.example/s3cret",
            headers: { "x-secret": "s3cret" },
          },
          { url: "https://plain.example" },
        ],
        pending: { feeds: ["wss://s3cret@feed.example/s3cret"] },
        passthrough: "https://s3cret@other.example/s3cret",
      },
    ],
    cache: { redis: "redis+sentinel://:s3cret@h1:1,h2/name?sentinelPassword=s3cret" },
    access: { keys: [{ name: "mine", sha256: "5".repeat(64) }] },
  });
  const text = formatMasked(config);
  assert.ok(!text.includes("s3cret") && !text.includes("555"), text);
  const shown = JSON.parse(text);
  const [chain] = shown.chains;
  assert.equal(chain.nodes[0].url, "https://node.example:8080/***");
  assert.equal(chain.nodes[1].url, "https://plain.example");
  assert.deepEqual(chain.nodes[0].headers, { "x-secret": "***" });
  assert.equal(shown.cache.redis, "redis+sentinel://h1:1,h2/***");
  assert.equal(shown.access.keys[0].name, "mine");
  assert.equal(shown.server.port, 8545);
});

test("a URL without slashes after its scheme is refused, because its parts are ambiguous", () => {
  for (const url of ["http:node.example/s3cret", "http:x//node.example/s3cret"]) {
    const { error } = configSchema.safeParse({ chains: [{ name: "main", nodes: [{ url }] }] });
    assert.match(String(error), /a URL that begins with http:/);
  }
});

test("a host with unusual characters is hidden", () => {
  const chains = [{ name: "main", nodes: [{ url: "http://node.example's3!cret" }] }];
  assert.ok(!formatMasked(configSchema.parse({ chains })).includes("s3!cret"));
});

test("a Redis option that is no URL is hidden, because it may be a credential", () => {
  const chains = [{ name: "main", nodes: [{ url: "http://node.example" }] }];
  const config = configSchema.parse({ chains, cache: { redis: "alchemy:s3cret" } });
  assert.equal(JSON.parse(formatMasked(config)).cache.redis, "***");
});
