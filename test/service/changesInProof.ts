import { type AnswerLie, type Change, type Fields, flip } from "../support/fakes/answerLie.ts";
import type { BlockSummary, ChainCall, SealedChain } from "../support/servers/sealedChain.ts";

const METHOD = "eth_getProof";
const KEYS = ["0x0", "0x1", "0x2"].map((key) => `0x${key.slice(2).padStart(64, "0")}`);

const slotsOf = ({ storageProof }: Fields): readonly Fields[] => storageProof as readonly Fields[];
const nodesOf = (nodes: unknown): readonly string[] => nodes as readonly string[];

const withSlots =
  (change: Change): Change =>
  (proof) => ({ ...proof, storageProof: slotsOf(proof).map(change) });

/** Wrong proofs of a contract, at a final and at a recent block. The state root in the header of the block disproves them. */
export const changesInProof = ({ token, final, recent, accounts }: SealedChain): readonly AnswerLie[] => {
  const [finalBlock, olderBlock] = final.slice(-2).toReversed() as [BlockSummary, BlockSummary];
  const [recentBlock, olderRecent] = recent.slice(-2).toReversed() as [BlockSummary, BlockSummary];
  // The hash of a final block that is older than the block ring is not known by its number.
  const proofAt = (block: BlockSummary, address = token): ChainCall => ({
    method: METHOD,
    params: [address, KEYS, final.includes(block) ? { blockHash: block.hash } : block.number],
  });
  const [account = ""] = accounts;
  const lieOf = (name: string, block: BlockSummary, change: Change): AnswerLie => ({
    call: proofAt(block),
    before: proofAt(block, account),
    check: "proof",
    lie: { name: `a proof ${name}`, methods: [METHOD], result: (result) => change(result as Fields) },
  });
  const instead = (name: string, block: BlockSummary, other: ChainCall): AnswerLie => ({
    ...lieOf(name, block, (proof) => proof),
    lie: {
      name: `a proof ${name}`,
      methods: [METHOD],
      result: async (_, __, truth) => ({ ...((await truth(other.method, other.params)) as Fields), address: token }),
    },
  });
  return [
    lieOf("with another balance", recentBlock, flip("balance")),
    lieOf("with another nonce", finalBlock, flip("nonce")),
    lieOf("with other values of slots", finalBlock, withSlots(flip("value"))),
    lieOf("with another root of the storage", recentBlock, flip("storageHash")),
    lieOf("without its last node", recentBlock, (proof) => ({
      ...proof,
      accountProof: nodesOf(proof.accountProof).slice(0, -1),
    })),
    lieOf("without one of its slots", finalBlock, (proof) => ({ ...proof, storageProof: slotsOf(proof).slice(1) })),
    lieOf(
      "with empty slots",
      recentBlock,
      withSlots((slot) => ({ ...slot, value: "0x0", proof: [] })),
    ),
    instead("of an older block", recentBlock, proofAt(olderRecent)),
    instead("of an older final block", finalBlock, proofAt(olderBlock)),
  ];
};
