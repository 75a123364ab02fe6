import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { createKeyPrefix, requestKey } from "../../src/cache/cacheEntry.ts";
import { formatCanonical } from "../../src/cache/sameResult.ts";
import type { RetentionClass } from "../../src/core/retention.ts";
import type { RpcRequest } from "../../src/core/rpcSource.ts";
import { createHeads, hashOf } from "../support/builders/heads.ts";
import { createRequest } from "../support/builders/request.ts";

const PREFIX = createKeyPrefix("base", 8453, hashOf(1, 2));
const HEADS = createHeads({ latest: 1_000_000, finalized: 1_000_000 });

test("a key begins with format version, name of the chain, chain id and the first 8 bytes of the genesis hash", () => {
  const prefix = createKeyPrefix("base", 8453n, `0xF712aa9241cc2436${"0".repeat(48)}`);
  assert.equal(prefix, "forebay1:base.8453:f712aa9241cc2436:");
  const request = createRequest({
    retention: "final",
    block: { number: 16n },
    canonicalParams: '["eth_getBlockReceipts"]',
  });
  assert.equal(requestKey(prefix, request, HEADS), `${prefix}final:16:["eth_getBlockReceipts"]`);
});

test("long canonical params are replaced by their SHA-256", () => {
  const key = requestKey(PREFIX, createRequest({ retention: "byHash", canonicalParams: "x".repeat(1_000) }), HEADS);
  assert.match(key ?? "", /:byHash#[0-9a-f]{64}$/);
});

/** JSON values with few leaves, and with names that contain JSON syntax, so that similar values are common. */
const name = fc.constantFrom("a", "b", ":", '"', "#", "__proto__", "é", "\ud800", "0");
const { value: json } = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3 },
    fc.constantFrom(null, true, 0, 1, "", "0", "null", ",", '","', "0x1", Number.POSITIVE_INFINITY),
    fc.array(tie("value"), { maxLength: 3 }),
    fc.dictionary(name, tie("value"), { maxKeys: 3, noNullPrototype: true }),
  ),
}));

const isSame = (one: unknown, other: unknown): boolean => {
  try {
    assert.deepStrictEqual(one, other);
    return true;
  } catch {
    return false;
  }
};

const reversed = (value: unknown): unknown => {
  if (Array.isArray(value)) {
    return value.map(reversed);
  }
  if (typeof value !== "object" || value === null) {
    return value;
  }
  const copy = Object.create(Object.getPrototypeOf(value));
  for (const [member, inner] of Object.entries(value).reverse()) {
    Object.defineProperty(copy, member, {
      value: reversed(inner),
      enumerable: true,
      configurable: true,
      writable: true,
    });
  }
  return copy;
};

test("canonical texts are equal if and only if the values are", () => {
  fc.assert(
    fc.property(json, json, (one, other) => {
      assert.equal(formatCanonical(one) === formatCanonical(other), isSame(one, other));
    }),
    { numRuns: 2_000 },
  );
});

test("canonical texts do not depend on the order of keys", () => {
  fc.assert(fc.property(json, (value) => assert.equal(formatCanonical(reversed(value)), formatCanonical(value))));
  assert.equal(formatCanonical({ b: 1, a: undefined }), '{"b":1}');
});

interface KeyInput {
  readonly retention: RetentionClass;
  readonly number: bigint;
  readonly fork: number;
  readonly canonicalParams: unknown;
}

const keyInput: fc.Arbitrary<KeyInput> = fc.record({
  retention: fc.constantFrom<RetentionClass>(
    "constant",
    "byHash",
    "final",
    "recent",
    "recentState",
    "byTransaction",
    "head",
  ),
  number: fc.bigInt({ min: 0n, max: 20n }),
  fork: fc.integer({ min: 0, max: 1 }),
  canonicalParams: fc.oneof(
    json,
    fc.string({ minLength: 120, maxLength: 200 }),
    fc.constantFrom("x".repeat(126), "x".repeat(127)),
  ),
});

const requestFor = ({ retention, number, fork, canonicalParams }: KeyInput): RpcRequest =>
  createRequest({
    retention,
    block: { number, hash: hashOf(number, fork) },
    canonicalParams: formatCanonical(canonicalParams),
  });

/** The parts of a request that its key must distinguish: retention class, block and canonical parameters. */
const identity = ({ retention, number, fork, canonicalParams }: KeyInput): unknown => {
  if (retention === "final") {
    return [retention, canonicalParams, number];
  }
  return retention === "recent" || retention === "recentState"
    ? [retention, canonicalParams, number, fork]
    : [retention, canonicalParams];
};

test("equal requests share a key, and different requests never do", () => {
  fc.assert(
    fc.property(keyInput, keyInput, (one, other) => {
      const keys = [one, other].map((each) => requestKey(PREFIX, requestFor(each), HEADS));
      assert.equal(keys[0] === keys[1], isSame(identity(one), identity(other)));
    }),
    { numRuns: 5_000 },
  );
});

test("requests that differ in one part never share a key", () => {
  fc.assert(
    fc.property(
      keyInput,
      keyInput,
      fc.constantFrom<keyof KeyInput>("retention", "number", "fork", "canonicalParams"),
      (one, other, part) => {
        const changed = { ...one, [part]: other[part] };
        const keys = [one, changed].map((each) => requestKey(PREFIX, requestFor(each), HEADS));
        assert.equal(keys[0] === keys[1], isSame(identity(one), identity(changed)));
      },
    ),
    { numRuns: 5_000 },
  );
});

test("different chains, and a restarted chain, never share a key", () => {
  const prefixes = [
    createKeyPrefix("a", 1, hashOf(1)),
    createKeyPrefix("a", 11, hashOf(1)),
    createKeyPrefix("a1", 1, hashOf(1)),
    createKeyPrefix("a", 1, `0x01${"0".repeat(62)}`),
    createKeyPrefix("a", 1, `0x02${"0".repeat(62)}`),
  ];
  const keys = prefixes.map((prefix) => requestKey(prefix, createRequest({ retention: "constant" }), HEADS));
  assert.equal(new Set(keys).size, prefixes.length);
});
