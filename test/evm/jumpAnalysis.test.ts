import assert from "node:assert/strict";
import { test } from "node:test";
import { fixedForks } from "../../src/ethereum/ethereumForks.ts";
import { type Address, ZERO_ADDRESS, ZERO_HASH } from "../../src/ethereum/hex.ts";
import { rulesAt } from "../../src/ethereum/rules.ts";
import { createMessageEngine } from "../../src/evm/messageEngine.ts";
import { StateOverlay } from "../../src/evm/stateOverlay.ts";

const AT: Address = `0x${"aa".repeat(20)}`;
const NOTHING = new Uint8Array(0);

/** Counts how often the library reads a byte after the executed code. Only its jump analysis does. */
const createWatchedCode = (): { readonly code: Uint8Array; readonly reads: () => number } => {
  const bytes = Uint8Array.fromHex("6003565b00fe");
  let reads = 0;
  const code = new Proxy(bytes, {
    get: (target, key) => {
      if (key === "5") {
        reads++;
      }
      const value: unknown = Reflect.get(target, key, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
  return { code, reads: () => reads };
};

test("an engine analyses the jumps of a code once, not in every call", async () => {
  const { code, reads } = createWatchedCode();
  const block = {
    number: 1n,
    timestamp: 1n,
    coinbase: ZERO_ADDRESS,
    gasLimit: 30_000_000n,
    baseFee: 0n,
    prevRandao: ZERO_HASH,
    blobBaseFee: 1n,
    blockHash: () => ZERO_HASH,
  };
  const run = async (engine: ReturnType<typeof createMessageEngine>) => {
    const state = new StateOverlay({
      account: () => ({ nonce: 1n, balance: 0n, codeHash: `0x${"11".repeat(32)}` }),
      code: () => code,
      storage: () => NOTHING,
      blockHash: () => ZERO_HASH,
    });
    const message = { caller: ZERO_ADDRESS, to: AT, value: 0n, data: NOTHING, gas: 100_000n };
    const context = { block, gasPrice: 0n, blobVersionedHashes: [], warmAddresses: [], warmSlots: [] };
    const { status } = await engine.run(state, message, context);
    assert.equal(status, "success");
  };
  const engine = createMessageEngine(rulesAt(fixedForks(1n, "prague"), 1n, 1n));
  // The first jump starts the analysis.
  await run(engine);
  await run(engine);
  const before = reads();
  await run(engine);
  await run(engine);
  assert.equal(reads(), before);
  await run(createMessageEngine(rulesAt(fixedForks(1n, "osaka"), 1n, 1n)));
  assert.equal(reads(), before + 1);
});
