/** Members that hold a transaction's hash in a block with whole transactions, and in receipts. */
const MARKS = ['"hash":"0x', '"transactionHash":"0x'];
const LIST = '"transactions":["0x';
const DIGITS = 64;

/**
 * The hashes of the transactions that a block or its receipts list, found in the text without parsing it: 64 digits behind a
 * known member. It may find a hash that is no transaction's (the block's own), which harms nobody, and misses spaced-out JSON.
 */
export const scanTransactionHashes = (body: Uint8Array): Set<string> => {
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength);
  const hashes = new Set<string>();
  const addAt = (start: number): number => {
    hashes.add(`0x${bytes.toString("latin1", start, start + DIGITS).toLowerCase()}`);
    return start + DIGITS;
  };
  for (const mark of MARKS) {
    for (let at = bytes.indexOf(mark); at >= 0; at = bytes.indexOf(mark, at + mark.length)) addAt(at + mark.length);
  }
  let at = bytes.indexOf(LIST);
  if (at >= 0) {
    at = addAt(at + LIST.length);
    while (bytes.toString("latin1", at, at + 5) === '","0x') at = addAt(at + 5);
  }
  return hashes;
};
