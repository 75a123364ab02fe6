import { setTimeout as wait } from "node:timers/promises";
import { workerEntry } from "../../../src/app/workerEntry.ts";
import type { StateKeys, StateValues } from "../../../src/core/stateReader.ts";
import { fixedForks } from "../../../src/ethereum/chainForks.ts";
import { type Hash, parseData, ZERO_HASH } from "../../../src/ethereum/hex.ts";
import { EMPTY_CODE_HASH, keccak256Hex } from "../../../src/ethereum/keccak.ts";
import { EvmWorkers } from "../../../src/evm/runs/evmWorkers.ts";
import { PARENT } from "../../support/builders/parentBlock.ts";

/** Starts workers, executes calls on each, and sends the resident memory when all are idle. */
const [, , workers, codeHex, data] = process.argv;
const size = Number(workers);
const CALLS = 20;
const SETTLE_MS = 1_500;
const AT = `0x${"70".repeat(20)}`;

const code = parseData(`0x${codeHex?.slice(2)}`);
const codeHash = keccak256Hex(code);
const read = ({ accounts, slots, blockHashes }: StateKeys): Promise<StateValues> =>
  Promise.resolve({
    accounts: accounts.map((address) => [
      address,
      { nonce: 1n, balance: 0n, codeHash: address === AT ? codeHash : EMPTY_CODE_HASH },
    ]),
    codes: [[codeHash, code]],
    slots: slots.map(([address, slot]) => [address, slot, Uint8Array.of(7)]),
    blockHashes: blockHashes.map((number): readonly [bigint, Hash] => [number, ZERO_HASH]),
  });
const paramsText = new TextEncoder().encode(JSON.stringify([{ to: AT, data }, "latest"]));
const input = { paramsText, block: PARENT, forks: fixedForks(1n, "prague"), gasCap: 50_000_000n };
const { signal } = new AbortController();

const pool = size === 0 ? undefined : new EvmWorkers({ entry: workerEntry("simulation"), size });
pool?.start();
while (pool !== undefined && pool.idle < size) {
  await wait(50);
}
for (let call = 0; pool !== undefined && call < CALLS; call++) {
  const request = {
    name: "call",
    input,
    source: { id: ZERO_HASH, read },
    nativeContracts: [],
    timeoutMs: 5_000,
    signal,
  };
  await Promise.all(Array.from({ length: size }, () => pool.run(request)));
}
await wait(SETTLE_MS);
process.send?.(process.memoryUsage.rss());
await pool?.close();
