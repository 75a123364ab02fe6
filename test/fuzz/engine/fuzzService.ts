import { isDeepStrictEqual } from "node:util";
import { rpc } from "../../support/clients/rpc.ts";
import type { Lifespan } from "../../support/servers/redis.ts";
import type { ChainCall } from "../../support/servers/sealedChain.ts";
import { createService, type Service, type ServiceChain } from "../../support/servers/service.ts";
import { answerCall } from "../../world/chain/nodeAnswers.ts";
import { TruthChain } from "../../world/chain/truthChain.ts";
import { startWorldNode } from "../../world/nodes/worldNode.ts";
import { readCorpus } from "./corpus.ts";
import { mutateBytes } from "./mutateBytes.ts";
import type { Choices } from "./random.ts";
import { grammarRequest, REQUEST_WORDS } from "./requestGrammar.ts";
import { Finding } from "./target.ts";

const CHAIN_ID = 901;

/** A service in this process, in front of a node whose every answer is known. */
export interface FuzzService {
  readonly chain: TruthChain;
  readonly service: Service;
}

/** A service with small limits, and a source of random request bodies for it. `fromCorpus` is the share of known bodies. */
export const startRequestFuzz = async (t: Lifespan, fromCorpus: number) => {
  const fuzzed = await startFuzzService(t, {
    chain: { logs: { maxFilters: 20 } },
    rest: { server: { maxBodyBytes: 100_000, maxBatch: 20 }, cache: { memoryBytes: 1_000_000 } },
  });
  const corpus = readCorpus("http");
  const bodyOf = (choices: Choices): Buffer => {
    const body = choices.chance(fromCorpus)
      ? choices.pick(corpus)
      : Buffer.from(JSON.stringify(grammarRequest(fuzzed.chain, choices)) ?? "");
    return choices.chance(0.35) ? mutateBytes(body, choices, REQUEST_WORDS) : body;
  };
  return { fuzzed, bodyOf };
};

export const startFuzzService = async (
  t: Lifespan,
  more: { readonly chain?: Partial<ServiceChain>; readonly rest?: Parameters<typeof createService>[1] } = {},
): Promise<FuzzService> => {
  const chain = await TruthChain.create(CHAIN_ID, 1);
  const node = await startWorldNode(t, chain);
  const service = await createService(
    { nodes: [{ url: node.url }], blockTimeMs: 1_000, forks: "prague", ...more.chain },
    more.rest,
  );
  t.after(() => service.close());
  return { chain, service };
};

interface Response {
  readonly result?: unknown;
  readonly error?: { readonly code: number; readonly message: string };
}

/** Throws a Finding if a response is no JSON-RPC, or an internal error. */
export const checkResponse = (text: string, input: string): void => {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch (error) {
    throw new Finding(`the response is not JSON: ${text.slice(0, 200)}`, input, error);
  }
  for (const each of [parsed].flat() as Response[]) {
    if (each.error?.message === "Internal error") {
      throw new Finding("Internal error", input);
    }
    if ((each.result === undefined) === (each.error === undefined)) {
      throw new Finding(`neither a result nor an error: ${text.slice(0, 200)}`, input);
    }
  }
};

/** Throws a Finding if the service answers a call differently from its node. */
export const compareWithNode = async (
  { chain, service }: FuzzService,
  { method, params }: ChainCall,
  input: string,
): Promise<void> => {
  const expected = answerCall({ chain, head: chain.head }, method, params);
  const { body, text } = await rpc(service.url, method, params);
  if (!isDeepStrictEqual(body.result, expected)) {
    throw new Finding(`${method} ${JSON.stringify(params)}: ${text.slice(0, 300)}`, input);
  }
};
