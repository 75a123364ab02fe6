import { isAncestor } from "../chain/sealedBlock.ts";
import type { TruthChain } from "../chain/truthChain.ts";
import type { JudgedAnswer } from "./outcome.ts";

const NUMBER = /"0x[0-9a-f]{1,8}"/g;
const HASH = /0x[0-9a-f]{64}/g;

/** Whether forebay may not know a block that a question names: it is newer than the allowed lag, or was replaced. */
export const namesUnknownBlock = (chain: TruthChain, { call, startMs, endMs }: JudgedAnswer): boolean => {
  const sinceMs = startMs - chain.lagBound.ofAnswer(startMs, endMs);
  const text = JSON.stringify(call.params);
  const numbers = text.match(NUMBER) ?? [];
  const blocks = (text.match(HASH) ?? []).flatMap((hash) => chain.block(hash) ?? []);
  return (
    numbers.some((number) => chain.publishedMsOf(Number(JSON.parse(number))) > sinceMs) ||
    blocks.some((block) => chain.publishedMs(block) > sinceMs || !isAncestor(block, chain.head))
  );
};
