/** Members with a transaction hash, in blocks with full transactions and in receipts. */
const MEMBERS = ['"hash":"0x', '"transactionHash":"0x'];
const LIST = '"transactions":["0x';
const DIGITS = 64;

/**
 * Scans the JSON text of a block or its receipts for transaction hashes. A hash is 64 digits after a known member.
 * The result may contain the block's own hash, which is harmless. It is incomplete for JSON with whitespace.
 */
export const scanTransactionHashes = (body: Uint8Array): Set<string> => {
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength);
  const hashes = new Set<string>();
  const addAt = (start: number): number => {
    hashes.add(`0x${bytes.toString("latin1", start, start + DIGITS).toLowerCase()}`);
    return start + DIGITS;
  };
  for (const member of MEMBERS) {
    for (let at = bytes.indexOf(member); at >= 0; at = bytes.indexOf(member, at + member.length)) {
      addAt(at + member.length);
    }
  }
  let at = bytes.indexOf(LIST);
  if (at >= 0) {
    at = addAt(at + LIST.length);
    while (bytes.toString("latin1", at, at + 5) === '","0x') {
      at = addAt(at + 5);
    }
  }
  return hashes;
};
