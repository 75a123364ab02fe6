import assert from "node:assert/strict";
import { test } from "node:test";
import { PIECE_BYTES } from "../../src/limits/pieces.ts";
import { IncompleteMessage } from "../../src/websocket/incompleteMessage.ts";

const FIN = 0x80;
const TEXT = 1;
const CONTINUATION = 0;
const PING = 9;

const lengthOf = (bytes: number): number[] => {
  if (bytes < 126) {
    return [bytes];
  }
  return bytes < 65_536
    ? [126, bytes >> 8, bytes & 0xff]
    : [127, 0, 0, 0, 0, bytes >>> 24, (bytes >> 16) & 0xff, (bytes >> 8) & 0xff, bytes & 0xff];
};

/** A masked frame with a payload of this length. */
const frame = (first: number, bytes: number): Buffer => {
  const [length = 0, ...more] = lengthOf(bytes);
  return Buffer.from([first, 0x80 | length, ...more, 1, 2, 3, 4, ...Array.from({ length: bytes }, () => FIN | PING)]);
};

const LENGTHS = [0, 1, 125, 126, 65_535, 65_536];

for (const length of LENGTHS) {
  test(`a message of ${length} bytes costs nothing once it is complete, whole or byte by byte`, () => {
    const message = new IncompleteMessage();
    const bytes = frame(FIN | TEXT, length);
    message.add(Buffer.concat([bytes, bytes]));
    assert.equal(message.costBytes, 0);
    for (let at = 0; at < bytes.length; at++) {
      message.add(bytes.subarray(at, at + 1));
      assert.equal(message.costBytes > at * PIECE_BYTES, at < bytes.length - 1);
    }
    message.add(bytes);
    assert.equal(message.costBytes, 0);
  });
}

test("frames and chunks of a message count, also after a complete one in their chunk and around a ping", () => {
  const message = new IncompleteMessage();
  const fragments = Array.from({ length: 1_000 }, () => frame(CONTINUATION, 1));
  message.add(Buffer.concat([frame(FIN | TEXT, 3), frame(TEXT, 1), ...fragments]));
  const cost = message.costBytes;
  assert.equal(cost, 1_001 * (PIECE_BYTES + 1));
  message.add(frame(FIN | PING, 4));
  assert.equal(message.costBytes, cost);
  assert.equal(message.areTooMany, false);
  message.add(Buffer.concat(Array.from({ length: 4 }, () => fragments).flat()));
  assert.equal(message.areTooMany, true);
  message.add(frame(FIN | CONTINUATION, 1));
  assert.deepEqual([message.costBytes, message.areTooMany], [0, false]);
});

test("control frames cost nothing once they are complete, however many there are", () => {
  const message = new IncompleteMessage();
  for (let pong = 0; pong < 5_000; pong++) {
    message.add(frame(FIN | PING, 4));
  }
  assert.deepEqual([message.costBytes, message.areTooMany], [0, false]);
});
