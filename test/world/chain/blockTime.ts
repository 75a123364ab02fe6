/** The chain of the truth suite has a block a second. */
export const BLOCK_MS = 1_000;
