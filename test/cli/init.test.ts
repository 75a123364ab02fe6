import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { askMissing, formatInitialConfig, readInitOptions } from "../../src/cli/init.ts";
import { readArguments, readConfig } from "../../src/config/readConfig.ts";

/** Formats the file of these flags, and reads it as forebay does. */
const initialized = async (t: TestContext, args: readonly string[], environment: Record<string, string> = {}) => {
  const text = formatInitialConfig(await askMissing(readInitOptions(readArguments(["init", ...args], {}))));
  const folder = mkdtempSync(join(tmpdir(), "forebay-init-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const file = join(folder, "forebay.yaml");
  writeFileSync(file, text);
  return { text, config: readConfig(readArguments(["--config", file], {}), environment) };
};

test("the file for a provider is valid and names a variable in place of the key", async (t) => {
  const args = [
    "--provider",
    "alchemy:s3cret",
    "--provider",
    "publicnode",
    "--chain",
    "op,base",
    "--redis",
    "redis://r",
  ];
  const { text, config } = await initialized(t, args, { ALCHEMY_KEY: "k3y" });
  assert.ok(!text.includes("s3cret"));
  assert.deepEqual(
    config.chains.map(({ name, chainId, nodes }) => [name, chainId, nodes.map(({ url }) => url)]),
    [
      ["op", 10, ["https://opt-mainnet.g.alchemy.com/v2/k3y", "https://optimism-rpc.publicnode.com"]],
      ["base", 8453, ["https://base-mainnet.g.alchemy.com/v2/k3y", "https://base-rpc.publicnode.com"]],
    ],
  );
  assert.equal(config.cache.redis, "redis://r");
});

test("the file for own nodes, or for none, is valid", async (t) => {
  const own = await initialized(t, ["--upstream", "http://a:1", "--upstream", "http://b:2"]);
  assert.deepEqual(
    own.config.chains[0]?.nodes.map(({ url }) => url),
    ["http://a:1", "http://b:2"],
  );
  const { config } = await initialized(t, []);
  assert.equal(config.chains[0]?.nodes[0]?.url, "http://localhost:8545");
});
