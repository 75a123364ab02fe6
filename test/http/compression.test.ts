import assert from "node:assert/strict";
import { test } from "node:test";
import { chooseEncoding } from "../../src/http/writeResponse.ts";

const CHOICES: readonly (readonly [accept: string | undefined, encoding: string | undefined])[] = [
  [undefined, undefined],
  ["", undefined],
  ["gzip", "gzip"],
  ["GZIP", "gzip"],
  ["x-gzip", "gzip"],
  ["br", "br"],
  ["gzip, deflate, br, zstd", "br"],
  ["gzip;q=1.0, br;q=0.5", "gzip"],
  ["br;q=0, gzip", "gzip"],
  ["br ; q=0.000 , gzip ; q=0", undefined],
  ["*", "br"],
  ["*;q=0", undefined],
  ["*;q=0, gzip", "gzip"],
  ["br;q=0, *", "gzip"],
  ["identity", undefined],
  ["identity;q=1, gzip;q=0.5", undefined],
  ["gzip, identity;q=0.5", "gzip"],
  ["deflate, zstd", undefined],
  [";;,,q=1", undefined],
];

for (const [accept, encoding] of CHOICES) {
  test(`Accept-Encoding "${accept}"`, () => assert.equal(chooseEncoding(accept), encoding));
}
