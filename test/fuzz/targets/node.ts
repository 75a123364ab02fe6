import { request } from "undici";
import { rpc } from "../../support/clients/rpc.ts";
import { startFront } from "../../support/fakes/front.ts";
import type { ChainCall } from "../../support/servers/sealedChain.ts";
import { createService } from "../../support/servers/service.ts";
import { answerCall } from "../../world/chain/nodeAnswers.ts";
import { SENDERS } from "../../world/chain/openBlock.ts";
import { ancestorAt } from "../../world/chain/sealedBlock.ts";
import { TruthChain } from "../../world/chain/truthChain.ts";
import { startWorldNode } from "../../world/nodes/worldNode.ts";
import { checkResponse } from "../engine/fuzzService.ts";
import { mutateBytes } from "../engine/mutateBytes.ts";
import { mutateJson } from "../engine/mutateJson.ts";
import { type Choices, createChoices } from "../engine/random.ts";
import { type CreateTarget, Finding } from "../engine/target.ts";

const WORDS = [
  '"result":',
  '"error":{"code":-32000,"message":"x"}',
  '"id":',
  "null",
  "[]",
  "0x",
  '"jsonrpc":"2.0"',
  "]",
];
/** Heads come from another node, so that the chain can always be followed. */
const FINAL_DEPTH = 60;
const WARM_CALLS = 40;

/** Reads whose responses forebay verifies. */
const verifiedCall = (chain: TruthChain, choices: Choices): ChainCall => {
  const block = ancestorAt(chain.head, choices.below(chain.head.number - FINAL_DEPTH)) ?? chain.head;
  const number = `0x${block.number.toString(16)}`;
  return choices.pick([
    { method: "eth_getBlockByHash", params: [block.hash, true] },
    { method: "eth_getBlockByNumber", params: [number, true] },
    { method: "eth_getBlockReceipts", params: [number] },
    { method: "eth_getTransactionByHash", params: [choices.pick(chain.transactions)] },
    { method: "eth_getLogs", params: [{ blockHash: block.hash }] },
  ]);
};

const plainCall = (chain: TruthChain, choices: Choices): ChainCall => {
  const number = `0x${choices.below(chain.head.number).toString(16)}`;
  return choices.pick([
    { method: "eth_getLogs", params: [{ fromBlock: number, toBlock: "latest" }] },
    { method: "eth_getBalance", params: [choices.pick(SENDERS), number] },
    { method: "eth_call", params: [{ to: choices.pick(SENDERS) }, number] },
    { method: "eth_getTransactionReceipt", params: [choices.pick(chain.transactions)] },
    { method: "eth_simulateV1", params: [{ blockStateCalls: [{ calls: [{ to: choices.pick(SENDERS) }] }] }, number] },
    { method: "eth_feeHistory", params: ["0x2", number, []] },
    { method: "debug_traceTransaction", params: [choices.pick(chain.transactions)] },
    { method: "foo_bar", params: [number] },
  ]);
};

const HEAD_POLL = /"(latest|safe|finalized|pending)"|"eth_chainId"|"web3_clientVersion"/;

/** Changes the response of a node, as text or as JSON. */
const spoil = (text: string, choices: Choices): string => {
  if (choices.chance(0.5)) {
    return JSON.stringify(mutateJson(JSON.parse(text), choices)) ?? "";
  }
  return mutateBytes(Buffer.from(text), choices, WORDS).toString("latin1");
};

/** Responses of a node, changed on their way. A response is that of its call, or an error. */
export const createTarget: CreateTarget = async (t) => {
  const chain = await TruthChain.create(901, 1);
  const node = await startWorldNode(t, chain);
  let current: Choices | undefined;
  let spoilt = "";
  const front = await startFront(async (body) => {
    const headers = { "content-type": "application/json" };
    const answer = await request(node.url, { method: "POST", headers, body });
    const text = await answer.body.text();
    if (current === undefined || HEAD_POLL.test(body) || current.chance(0.2)) {
      return text;
    }
    spoilt = spoil(text, current);
    return spoilt;
  });
  t.after(() => front.close());
  const service = await createService(
    {
      nodes: [{ url: front.url }],
      blockTimeMs: 1_000,
      forks: "prague",
      upstream: { timeoutMs: 2_000, attempts: 2, breaker: { failures: 1_000_000_000 } },
    },
    { cache: { memoryBytes: 0 } },
  );
  t.after(() => service.close());
  // A check that a node has passed once is never turned off.
  const warm = createChoices(0, 0);
  for (let count = 0; count < WARM_CALLS; count++) {
    const { method, params } = verifiedCall(chain, warm);
    await rpc(service.url, method, params);
  }
  return {
    run: async (choices) => {
      const isVerified = choices.chance(0.6);
      const call = isVerified ? verifiedCall(chain, choices) : plainCall(chain, choices);
      current = choices;
      spoilt = "";
      try {
        const { text, body } = await rpc(service.url, call.method, call.params);
        const input = `${JSON.stringify(call)} ${spoilt}`;
        checkResponse(text, input);
        // No hash proves that a transaction does not exist.
        const isNull = call.method === "eth_getTransactionByHash" && body.result === null;
        if (isVerified && body.result !== undefined && !isNull) {
          const truth = answerCall({ chain, head: chain.head }, call.method, call.params);
          const difference = findDifference(body.result, truth);
          if (difference !== undefined) {
            throw new Finding(`wrong response to ${call.method}: ${difference}`, input);
          }
        }
      } finally {
        current = undefined;
      }
    },
  };
};

type Fields = Readonly<Record<string, unknown>>;

/** The fields that name the object of the call. With one node, other fields can be wrong (docs/answers.md). */
const IDENTITY = ["hash", "transactionHash"] as const;

/** Returns the first identity of the truth that the result does not have. */
const findDifference = (result: unknown, truth: unknown): string | undefined => {
  const [own, right]: [Fields, Fields] = [Object(result), Object(truth)];
  const name = IDENTITY.find((each) => right[each] !== undefined && !isSame(own[each], right[each]));
  return name && `${name}: ${JSON.stringify(own[name])?.slice(0, 200)}`;
};

const isSame = (value: unknown, expected: unknown): boolean =>
  String(value).toLowerCase() === String(expected).toLowerCase();
