import { startAnvil } from "../../devnet/anvil.ts";
import { createCallWorld, type PlainCall } from "../../support/builders/callWorld.ts";
import { rpc } from "../../support/clients/rpc.ts";
import { createService } from "../../support/servers/service.ts";
import { checkResponse } from "../engine/fuzzService.ts";
import { mutateJson } from "../engine/mutateJson.ts";
import type { Choices } from "../engine/random.ts";
import { type CreateTarget, Finding } from "../engine/target.ts";

const AT_ONCE = 4;
const GAS = "0x200000";
const MUTATED_SHARE = 0.6;

interface Result {
  readonly calls: readonly {
    readonly status: string;
    readonly gasUsed: string;
    readonly returnData: string;
    readonly logs: readonly { readonly address: string; readonly topics: readonly string[]; readonly data: string }[];
  }[];
}

/** The fields that are equal in both: anvil has its own headers, and another field for a revert's bytes. */
const comparable = (results: unknown): string =>
  JSON.stringify(
    (results as readonly Result[]).map(({ calls }) =>
      calls.map(({ status, gasUsed, returnData, logs }) => ({
        status,
        gasUsed,
        returnData: status === "0x1" ? returnData : "",
        logs: logs.map(({ address, topics, data }) => [address.toLowerCase(), topics, data]),
      })),
    ),
  );

/** Simulations and single calls. Valid ones have the results of a real node. */
export const createTarget: CreateTarget = async (t) => {
  const anvil = await startAnvil(["--hardfork", "prague", "--no-mining"]);
  t.after(() => anvil.close());
  const world = await createCallWorld(anvil, "prague");
  const service = await createService(
    { nodes: [{ url: anvil.url }], forks: "prague" },
    { cache: { memoryBytes: 1_000_000 } },
  );
  t.after(() => service.close());
  const latest = (await anvil.call("eth_getBlockByNumber", "latest", false)) as { readonly timestamp: string };

  const nextCall = (choices: Choices): PlainCall => {
    let call = world.randomCall(choices.next);
    // The headers of the two differ.
    while (world.showsBlock(call)) {
      call = world.randomCall(choices.next);
    }
    return call;
  };
  const payloadOf = (choices: Choices): object => ({
    blockStateCalls: Array.from({ length: 1 + choices.below(3) }, (_, block) => ({
      // The two have different default times.
      blockOverrides: { time: `0x${(Number(latest.timestamp) + (block + 1) * 5).toString(16)}` },
      calls: Array.from({ length: 1 + choices.below(4) }, () => ({ ...nextCall(choices), gas: GAS })),
    })),
  });

  const compareSimulation = async (choices: Choices): Promise<void> => {
    const params = [payloadOf(choices), "latest"];
    const { body, text } = await rpc(service.url, "eth_simulateV1", params);
    if (body.result === undefined) {
      throw new Finding(text.slice(0, 300), params);
    }
    const [ours, theirs] = [comparable(body.result), comparable(await anvil.call("eth_simulateV1", ...params))];
    if (ours !== theirs) {
      throw new Finding(`ours ${ours.slice(0, 600)} theirs ${theirs.slice(0, 600)}`, params);
    }
  };

  const compareCall = async (choices: Choices): Promise<void> => {
    const params = [{ ...nextCall(choices), gas: GAS }, "latest"];
    const { body } = await rpc(service.url, "eth_call", params);
    const theirs = await anvil.call("eth_call", ...params).catch(() => undefined);
    if (body.result !== theirs) {
      throw new Finding(`ours ${JSON.stringify(body).slice(0, 300)} theirs ${String(theirs).slice(0, 300)}`, params);
    }
  };

  const runMutated = async (choices: Choices): Promise<void> => {
    const isCall = choices.chance(0.3);
    const method = isCall ? choices.pick(["eth_call", "eth_estimateGas"]) : "eth_simulateV1";
    let params: unknown = isCall
      ? [nextCall(choices), "latest", {}, {}]
      : [{ ...payloadOf(choices), validation: false }, "latest"];
    for (let count = 1 + choices.below(4); count > 0; count--) {
      params = mutateJson(params, choices);
    }
    const { text } = await rpc(service.url, method, Array.isArray(params) ? params : [params]);
    checkResponse(text, JSON.stringify(params) ?? "");
  };

  return {
    atOnce: AT_ONCE,
    run: (choices) => {
      if (choices.chance(MUTATED_SHARE)) {
        return runMutated(choices);
      }
      return choices.chance(0.5) ? compareSimulation(choices) : compareCall(choices);
    },
  };
};
