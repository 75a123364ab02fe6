import type { Choices } from "./random.ts";

/** Bytes that parsers of text and of binary formats treat in a special way. */
const SPECIAL = [0x00, 0x01, 0x0a, 0x0d, 0x20, 0x22, 0x2c, 0x2d, 0x3a, 0x5b, 0x5c, 0x5d, 0x7b, 0x7d, 0x7f, 0x80];
const LARGE = [0xb7, 0xb8, 0xbf, 0xc0, 0xc2, 0xed, 0xef, 0xf4, 0xf7, 0xf8, 0xfb, 0xff];
const MAX_CHANGES = 6;
const MAX_COPY = 64;
const MAX_REPEATS = 200;

type Change = (bytes: Buffer, choices: Choices, dictionary: readonly string[]) => Buffer;

const insert = (bytes: Buffer, at: number, more: Uint8Array): Buffer =>
  Buffer.concat([bytes.subarray(0, at), more, bytes.subarray(at)]);

const CHANGES: readonly Change[] = [
  (bytes, choices) => {
    const changed = Buffer.from(bytes);
    const at = choices.below(bytes.length);
    changed[at] = (changed[at] ?? 0) ^ (1 << choices.below(8));
    return changed;
  },
  (bytes, choices) => {
    const changed = Buffer.from(bytes);
    changed[choices.below(bytes.length)] = choices.pick([...SPECIAL, ...LARGE]);
    return changed;
  },
  (bytes, choices) =>
    insert(bytes, choices.below(bytes.length + 1), Uint8Array.of(choices.pick([...SPECIAL, ...LARGE]))),
  (bytes, choices) => {
    const at = choices.below(bytes.length);
    return Buffer.concat([bytes.subarray(0, at), bytes.subarray(at + 1 + choices.below(MAX_COPY))]);
  },
  (bytes, choices) => bytes.subarray(0, choices.below(bytes.length + 1)),
  (bytes, choices) => {
    const at = choices.below(bytes.length);
    const copy = bytes.subarray(at, at + 1 + choices.below(MAX_COPY));
    const copies = Array<Buffer>(1 + choices.below(choices.chance(0.1) ? MAX_REPEATS : 3)).fill(copy);
    return insert(bytes, choices.below(bytes.length + 1), Buffer.concat(copies));
  },
  (bytes, choices, dictionary) =>
    insert(bytes, choices.below(bytes.length + 1), Buffer.from(choices.pick([...dictionary, "0", '"']))),
  (bytes, choices, dictionary) => {
    const at = choices.below(bytes.length);
    const word = Buffer.from(choices.pick([...dictionary, "null", "-1", "{}"]));
    return Buffer.concat([bytes.subarray(0, at), word, bytes.subarray(at + word.length)]);
  },
];

/** Changes bytes at a few places. `dictionary` has words of the format. */
export const mutateBytes = (bytes: Uint8Array, choices: Choices, dictionary: readonly string[] = []): Buffer => {
  let changed = Buffer.from(bytes);
  for (let count = 1 + choices.below(MAX_CHANGES); count > 0 && changed.length > 0; count--) {
    changed = Buffer.from(choices.pick(CHANGES)(changed, choices, dictionary));
  }
  return changed;
};
