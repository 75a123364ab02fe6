/** The transaction that each block of the attacked node has. */
export const IN_EACH_BLOCK = `0x${"77".repeat(32)}`;
