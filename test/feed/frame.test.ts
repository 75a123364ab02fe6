import assert from "node:assert/strict";
import { test } from "node:test";
import { brotliCompressSync } from "node:zlib";
import { decodeFrame } from "../../src/feed/feedConnection.ts";

const MAX_BYTES = 1_000;
const bytes = (text: string) => new TextEncoder().encode(text);

test("plain JSON, leading whitespace and brotli give the same text", () => {
  const text = '{"index":0}';
  assert.deepEqual(decodeFrame(bytes(text), MAX_BYTES), { text });
  assert.deepEqual(decodeFrame(bytes(` \t\r\n${text}`), MAX_BYTES), { text });
  assert.deepEqual(decodeFrame(brotliCompressSync(text), MAX_BYTES), { text });
});

test("X Layer's frames begin with a record separator", () => {
  const text = '{"OpFlashblockPayload":{"index":0}}';
  for (const rest of [brotliCompressSync(text), bytes(text)]) {
    assert.deepEqual(decodeFrame(Buffer.concat([Uint8Array.of(0x1e), rest]), MAX_BYTES), { text });
  }
  const bomb = Buffer.concat([Uint8Array.of(0x1e), brotliCompressSync("0".repeat(1_000_000))]);
  assert.deepEqual(decodeFrame(bomb, MAX_BYTES), { refused: "tooLarge" });
  assert.deepEqual(decodeFrame(Uint8Array.of(0x1e), MAX_BYTES), { refused: "malformed" });
});

test("a frame is too large before or after decompression", () => {
  assert.deepEqual(decodeFrame(bytes(`{${" ".repeat(MAX_BYTES)}}`), MAX_BYTES), { refused: "tooLarge" });
  const bomb = brotliCompressSync("0".repeat(1_000_000));
  assert.ok(bomb.length < MAX_BYTES);
  assert.deepEqual(decodeFrame(bomb, MAX_BYTES), { refused: "tooLarge" });
});

test("a frame that is neither JSON, brotli nor UTF-8 is malformed", () => {
  for (const frame of [
    new Uint8Array(0),
    bytes("   "),
    bytes("hello"),
    Uint8Array.of(0x7b, 0xff, 0xfe),
    Uint8Array.of(1, 2, 3),
  ]) {
    assert.deepEqual(decodeFrame(frame, MAX_BYTES), { refused: "malformed" });
  }
});
