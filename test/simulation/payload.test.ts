import assert from "node:assert/strict";
import { test } from "node:test";
import { RpcError } from "../../src/jsonrpc/rpcError.ts";
import { type PlanOptions, planBlocks } from "../../src/simulation/blockPlan.ts";
import { parsePayload } from "../../src/simulation/payload.ts";
import { revertReason } from "../../src/simulation/revertReason.ts";

const LIMITS = { maxBlocks: 256, maxCalls: 5 };
const parse = (payload: unknown) => parsePayload(new TextEncoder().encode(JSON.stringify([payload])), LIMITS);
const failsWith = (payload: unknown, code: number, message: RegExp) =>
  assert.throws(
    () => parse(payload),
    (error) => error instanceof RpcError && error.code === code && message.test(error.message),
  );

test("missing and null fields have defaults, and alternative names are accepted", () => {
  const { blocks, validates } = parse({
    blockStateCalls: [
      null,
      { calls: null },
      { blockOverrides: { GASLIMIT: "0x10", timestamp: "0x20", nobodyKnows: 1 } },
    ],
    validation: null,
  });
  assert.equal(validates, false);
  assert.deepEqual(
    blocks.map(({ calls }) => calls.length),
    [0, 0, 0],
  );
  assert.equal(blocks[2]?.overrides.gasLimit, 16n);
  assert.equal(blocks[2]?.overrides.time, 32n);
});

test("input takes precedence over data, addresses become lower case, and overrides are sorted by address", () => {
  const high = `0x${"BB".repeat(20)}`;
  const low = `0x${"0a".repeat(20)}`;
  const { blocks } = parse({
    blockStateCalls: [
      { stateOverrides: { [high]: { nonce: "0x1" }, [low]: {} }, calls: [{ to: high, input: "0x01", data: "0x02" }] },
    ],
  });
  assert.deepEqual(
    blocks[0]?.states.map(([address]) => address),
    [low, high.toLowerCase()],
  );
  assert.equal(blocks[0]?.calls[0]?.to, high.toLowerCase());
  assert.deepEqual(blocks[0]?.calls[0]?.input, Uint8Array.of(1));
});

test("an empty string is zero or no bytes, and the prefix 0X is accepted", () => {
  const address = `0X${"0A".repeat(20)}`;
  const { blocks } = parse({
    blockStateCalls: [
      { calls: [{ to: address, value: "", input: "", data: "0x12", gas: "0X10" }] },
      {
        stateOverrides: { [address]: { code: "", balance: "0XA" } },
        blockOverrides: { prevRandao: `0X${"0".repeat(64)}` },
      },
    ],
  });
  const [call] = blocks[0]?.calls ?? [];
  assert.equal(call?.to, address.toLowerCase());
  assert.deepEqual([call?.value, call?.input, call?.gas], [0n, new Uint8Array(0), 16n]);
  const [state] = blocks[1]?.states ?? [];
  assert.deepEqual(state, [address.toLowerCase(), { ...state?.[1], code: new Uint8Array(0), balance: 10n }]);
  failsWith({ blockStateCalls: [{ calls: [{ value: "0x" }] }] }, -32602, /value must be/);
});

test("errors name the path of the invalid field", () => {
  failsWith({}, -32602, /^empty input$/);
  failsWith({ blockStateCalls: [{ calls: [{ value: "12" }] }] }, -32602, /blockStateCalls\[0\]\.calls\[0\]\.value/);
  failsWith({ blockStateCalls: [{ calls: [{ gas: "0x10000000000000000" }] }] }, -32602, /gas must be .* 2\^64/);
  failsWith({ blockStateCalls: [{ calls: [{ to: "0x12" }] }] }, -32602, /to must be an address/);
  failsWith({ blockStateCalls: [{ stateOverrides: { nobody: {} } }] }, -32602, /stateOverrides/);
  failsWith({ blockStateCalls: 7 }, -32602, /blockStateCalls must be an array/);
  failsWith({ blockStateCalls: Array(257).fill({}) }, -38026, /^too many blocks$/);
  failsWith({ blockStateCalls: [{ calls: Array(6).fill({}) }] }, -38026, /^too many calls in block: 6 > 5$/);
});

const plan = (overrides: readonly object[], options: Partial<PlanOptions> = {}) =>
  planBlocks(
    { number: 10n, timestamp: 100n },
    overrides.map((each) => ({ overrides: each, states: [], calls: [] })),
    { timeStep: 2n, maxBlocks: 256, ...options },
  ).map(({ number, timestamp, isGap }) => [number, timestamp, isGap]);

test("block numbers and times increase by default, and gaps are filled", () => {
  assert.deepEqual(plan([{}, { number: 13n }, { time: 200n }]), [
    [11n, 102n, false],
    [12n, 104n, true],
    [13n, 106n, false],
    [14n, 200n, false],
  ]);
  assert.deepEqual(plan([{}, {}], { firstTimestamp: 150n }), [
    [11n, 150n, false],
    [12n, 152n, false],
  ]);
});

test("blocks out of order are rejected with geth's texts", () => {
  assert.throws(() => plan([{ number: 10n }]), { code: -38020, message: "block numbers must be in order: 10 <= 10" });
  assert.throws(() => plan([{ time: 100n }]), {
    code: -38021,
    message: "block timestamps must be in order: 100 <= 100",
  });
  assert.throws(() => plan([{ number: 267n }]), { code: -38026, message: "too many blocks" });
});

test("the reason of a revert is a text, a panic, or absent", () => {
  const word = (value: number) => value.toString(16).padStart(64, "0");
  const bytes = (hex: string) => Uint8Array.fromHex(hex);
  const text = Buffer.from("because").toString("hex").padEnd(64, "0");
  assert.equal(revertReason(bytes(`08c379a0${word(32)}${word(7)}${text}`)), "because");
  assert.equal(revertReason(bytes(`4e487b71${word(0x11)}`)), "arithmetic underflow or overflow");
  assert.equal(revertReason(bytes(`4e487b71${word(0x99)}`)), "unknown panic code: 0x99");
  assert.equal(revertReason(bytes(`08c379a0${word(32)}${word(99)}${text}`)), undefined);
  assert.equal(revertReason(bytes("aabbccdd")), undefined);
  assert.equal(revertReason(new Uint8Array(0)), undefined);
});
