const SPACE = 0x20;

/** Returns the position of the first byte from `from` that is not JSON whitespace. */
export const skipSpace = (bytes: Uint8Array, from: number): number => {
  for (let at = from; ; at++) {
    const byte = bytes[at] ?? SPACE + 1;
    if (byte > SPACE || (byte !== SPACE && byte !== 0x0a && byte !== 0x0d && byte !== 0x09)) {
      return at;
    }
  }
};
