import assert from "node:assert/strict";
import { join } from "node:path";
import type { Address, Hex } from "viem";
import { startAnvil } from "../../devnet/anvil.ts";
import { compile } from "../builders/compile.ts";
import { metric, rpc } from "../clients/rpc.ts";
import { until } from "../clients/until.ts";
import { type AskTruth, type Lie, startLyingNode } from "../fakes/lyingNode.ts";
import { deploy } from "./deployed.ts";
import { followAnvil } from "./followHead.ts";
import type { Lifespan } from "./redis.ts";
import { createService, type ServiceChain } from "./service.ts";

/** Long, so that no read is late on a busy machine. The rig refreshes the heads itself. */
const LONG_MS = 20_000;
const STATE_HIT = "forebay; hit; detail=state";
const CONTRACTS = join(import.meta.dirname, "../../evm/Contracts.sol");
/** Nothing costs units, so that write sets are always read, and no budget ends. */
const FREE = {
  ...{ debug_traceBlockByHash: 0, eth_getBlockByHash: 0, eth_call: 0, eth_estimateGas: 0 },
  ...{ eth_getBalance: 0, eth_getTransactionCount: 0, eth_getCode: 0, eth_getStorageAt: 0, eth_getProof: 0 },
};

type Plan = Parameters<typeof deploy>[2];

export interface AnsweredCallsOptions {
  readonly args?: readonly string[];
  readonly contracts?: Plan;
  /** Codes that exist before the first block is served. */
  readonly codes?: Readonly<Record<Address, Hex>>;
  readonly state?: ServiceChain["state"];
  /** Changes the result of a call to the node. `truth` asks anvil. */
  readonly change?: (method: string, params: readonly unknown[], result: unknown, truth: AskTruth) => unknown;
}

/** A service in front of anvil, which answers calls from earlier answers. */
export const startAnsweredCalls = async (
  t: Lifespan,
  { args = [], contracts = [], codes = {}, state, change }: AnsweredCallsOptions,
) => {
  const anvil = await startAnvil(["--no-mining", "--hardfork", "prague", ...args]);
  t.after(() => anvil.close());
  const compiled = contracts.length === 0 ? new Map() : compile(CONTRACTS, "prague");
  const placed = await deploy(anvil, compiled, contracts);
  for (const [address, code] of Object.entries(codes)) {
    await anvil.call("anvil_setCode", address, code);
  }
  /** The node says that it is no development node. */
  const changed: Lie = {
    name: "changed",
    result: (result, { method, params }, truth) => {
      const given = method === "web3_clientVersion" ? "Other/v1" : result;
      return change?.(method, params, given, truth) ?? given;
    },
  };
  const front = await startLyingNode(t, anvil.url, [changed]);
  const service = await createService({
    nodes: [{ url: front.url }],
    blockTimeMs: LONG_MS,
    forks: "prague",
    allowNamespaces: ["anvil"],
    state: { waitMs: LONG_MS, source: "trace", units: FREE, ...state },
  });
  t.after(() => service.close());
  /** Makes the newest block the served head. */
  const follow = () => followAnvil(service, anvil);
  const mine = async (): Promise<void> => {
    await anvil.call("evm_mine");
    await follow();
  };
  /** Sends a transaction in a block of its own. */
  const send = async (to: Address, data: Hex, value?: bigint): Promise<void> => {
    await placed.send(to, data, value);
    await follow();
  };
  const ask = async (method: string, params: readonly unknown[], tag: unknown = "latest") => {
    const { body, headers } = await rpc(service.url, method, [params[0], tag, ...params.slice(1)]);
    return { result: body.result, error: body.error, isHit: headers.get("cache-status") === STATE_HIT };
  };
  /** Sends a call, and compares the response with that of the node. Returns whether no node was asked. */
  const compare = async (method: string, params: readonly unknown[]): Promise<boolean> => {
    const { result, error, isHit } = await ask(method, params);
    const [call, ...rest] = params;
    const expected = await anvil.call(method, call, "latest", ...rest).catch(({ message }: Error) => message);
    assert.equal(result ?? error?.message, expected, JSON.stringify(params));
    return isHit;
  };
  const events = (event: string): Promise<number> =>
    metric(service.opsUrl, "forebay_state_answers_total", `event="${event}"`);
  /** Sends a call at new blocks until no node is asked for it. */
  const learn = (method: string, params: readonly unknown[]): Promise<void> =>
    until(async () => {
      await mine();
      return (await ask(method, params)).isHit;
    }, `an answer to ${method} without a node`);
  /** Sends a call at new blocks until forebay has refused to learn its answer. */
  const refuse = async (method: string, params: readonly unknown[], event: string): Promise<void> => {
    const before = await events(event);
    await until(async () => {
      await mine();
      await ask(method, params);
      return (await events(event)) > before;
    }, `an answer that is not learned: ${event}`);
  };
  const asked = (method = "eth_call"): number => front.calls.get(method) ?? 0;
  return { anvil, placed, service, front, mine, send, ask, compare, learn, refuse, events, asked };
};
