import { type ByHashRead, blockInView, byHashRead } from "./byHashRead.ts";
import { fullTransactions } from "./eth_getBlockByNumber.ts";
import { readHash, required } from "./paramSpec.ts";
import { servedBlockRead } from "./servedBlockRead.ts";

const spec: ByHashRead = {
  name: "eth_getBlockByHash",
  params: [required("hash", readHash), fullTransactions],
  retention: "byHash",
  blockField: "hash",
  isSlow: true,
  inView: blockInView,
};

/** Returns a block with transaction hashes or full transactions, or null (docs/answers.md, Blocks and pending). */
export const eth_getBlockByHash = byHashRead(spec, servedBlockRead(spec));
