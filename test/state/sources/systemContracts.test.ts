import assert from "node:assert/strict";
import { test } from "node:test";
import { parseSystemContracts, SystemContracts } from "../../../src/state/sources/systemContracts.ts";

const ONE = "0x00000961Ef480Eb55e80D19ad83579A64c007002";
const TWO = "0x0000BBdDc7CE488642fb579F8B00f3a590007251";
const lower = [ONE, TWO].map((address) => address.toLowerCase());

test("system contracts are those of the current, the next and the last fork of eth_config", () => {
  const config = {
    current: { systemContracts: { ONE } },
    next: { systemContracts: { ONE, TWO, BAD: "0x12" } },
    last: null,
  };
  assert.deepEqual(parseSystemContracts(config), lower);
  for (const other of [null, undefined, {}, "0x", { current: { systemContracts: null } }]) {
    assert.deepEqual(parseSystemContracts(other), []);
  }
});

test("system contracts are read again after ten minutes, and stay if that fails", async () => {
  let nowMs = 0;
  const responses: unknown[] = [
    new Error("no method"),
    { current: { systemContracts: { ONE, TWO } } },
    new Error("down"),
  ];
  let reads = 0;
  const contracts = new SystemContracts(
    async () => {
      const response = responses[reads++];
      if (response instanceof Error) {
        throw response;
      }
      return response;
    },
    () => nowMs,
  );
  assert.deepEqual(await contracts.read(), []);
  assert.deepEqual(await contracts.read(), []);
  assert.equal(reads, 1);
  nowMs += 600_001;
  assert.deepEqual(await contracts.read(), lower);
  nowMs += 600_001;
  assert.deepEqual(await contracts.read(), lower);
  assert.equal(reads, 3);
});
