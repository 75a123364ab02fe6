import type { Context } from "../core/context.ts";
import { MustForwardError } from "../core/mustForwardError.ts";
import { readBlockNumberOrTagOrHash } from "../core/paramReaders.ts";
import type { RpcRequest, RpcResponse } from "../core/rpcSource.ts";
import type { PendingView } from "../core/view.ts";
import { parseJson } from "../json/jsonBytes.ts";
import { elementAt } from "../json/members.ts";
import { type Call, createCall, paramsTextOf } from "../jsonrpc/call.ts";
import { invalidParams } from "../jsonrpc/rpcError.ts";
import { prefetchHintOfPayload } from "../simulation/payload.ts";
import type { ExecutionBase } from "../simulation/simulator.ts";
import type { PrefetchHint } from "../state/fetch/prefetch.ts";
import { blockOfCanonical, headerNotFound, type ResolvedBlock, resolveBlock, stateBlock } from "./blockParams.ts";
import { requestAtBlock } from "./blockRead.ts";
import type { BlockReadSpec } from "./blockReadSpec.ts";
import { retryOnBranchChange } from "./branchRetry.ts";
import { held, pendingCallBase, pendingSimulationBase, sealedExecutionBase } from "./executions.ts";
import type { Method, MethodChain, MethodInput } from "./method.ts";
import type { CanonicalJson } from "./paramSpec.ts";
import { withPendingMode } from "./pendingReads.ts";

/** A larger payload is parsed only in the worker, and nothing is prefetched for it. */
const MAX_PREFETCHED_BYTES = 32 * 1024;

/**
 * Simulates on any block and on `pending` (docs/methods.md, eth_simulateV1).
 * A worker executes it. If forebay cannot execute it, a node does.
 */
export const eth_simulateV1: Method = {
  name: "eth_simulateV1",
  retention: "computed",
  atPending: "view",
  isSlow: true,
  handle: async (input) => {
    const { chain, call, context } = input;
    const { execution } = chain;
    if (execution === undefined) {
      return onNode(input, "not executed here");
    }
    const base = await baseOf(input, execution);
    if (base === undefined) {
      return onNode(input, "its state is the node's");
    }
    try {
      const response = execution.simulator.simulate(paramsTextOf(call), base.run, context);
      return held(await (base.pending ? withPendingMode(base.pending, response, context) : response), context);
    } catch (error) {
      if (error instanceof MustForwardError) {
        return onNode(input, "cannot be executed here");
      }
      throw error;
    }
  },
};

/** Forwards a simulation on the view's block. */
const onNode = async (input: MethodInput, detail: string): Promise<RpcResponse> => {
  const { pending } = input.context.view;
  const value = stateBlock.read(input.call.params[1] ?? stateBlock.fallback, stateBlock.name);
  const response = simulateOnNode(input, value);
  const shown = await (value === "pending" && pending
    ? withPendingMode(pending.mode, response, input.context)
    : response);
  return { ...shown, status: { fwd: "bypass", detail } };
};

/**
 * Sends the client's payload to a node, with the canonical block parameter. A tag becomes the number or the hash of the view's
 * block, because the node may have another head.
 */
const simulateOnNode = async ({ chain, call, context }: MethodInput, value: CanonicalJson): Promise<RpcResponse> => {
  if (call.params.length === 0) {
    throw missingPayload();
  }
  const parameter = blockOfCanonical(value);
  const read = { spec: ON_NODE, values: [null, value], position: 1, parameter, canonicalParams: "", isLasting: false };
  const requestAt = (block: ResolvedBlock): RpcRequest => {
    const request = requestAtBlock(read, block);
    const withPayload = (params: Call["params"]) => [...params.with(0, call.params[0]), ...call.params.slice(2)];
    const { byHash } = request;
    return {
      ...request,
      params: withPayload(request.params),
      ...(byHash && { byHash: createCall(byHash.method, withPayload(byHash.params)) }),
    };
  };
  const { heads } = context.view;
  const known = resolveBlock(parameter, heads);
  const current = known.kind === "aboveHead" ? await chain.heads.refresh(context) : heads;
  const inView = current === heads ? context : context.with({ view: { heads: current } });
  const send = (next: Context) => chain.nodes.request(requestAt(resolveBlock(parameter, next.view.heads)), next);
  return known.kind === "pending" ? send(inView) : retryOnBranchChange(chain, inView, send);
};

const ON_NODE: BlockReadSpec = { name: "eth_simulateV1", params: [], kind: "state" };

const missingPayload = () => invalidParams("missing value for required argument 0: payload");

interface Base {
  readonly run: ExecutionBase;
  readonly pending?: RpcResponse["pending"];
}

/** Returns undefined if a node must answer. */
const baseOf = async (
  { chain, call, context }: MethodInput,
  execution: NonNullable<MethodChain["execution"]>,
): Promise<Base | undefined> => {
  const paramsText = paramsTextOf(call);
  const payload = elementAt(paramsText, 0);
  if (payload === undefined) {
    throw missingPayload();
  }
  const text = elementAt(paramsText, 1);
  const parameter = text === undefined ? undefined : parseJson(text);
  const block = readBlockNumberOrTagOrHash(parameter ?? "latest", "block");
  const hint: PrefetchHint | undefined =
    paramsText.length <= MAX_PREFETCHED_BYTES ? prefetchHintOfPayload(call.params) : undefined;

  const { heads, pending } = context.view;
  let resolved = resolveBlock(block, heads);
  if (resolved.kind === "aboveHead") {
    resolved = resolveBlock(block, await chain.heads.refresh(context));
  }
  const shown = shownBlock(resolved, pending);
  if (shown !== undefined) {
    return atShownBlock({ context }, execution, shown, hint);
  }
  switch (resolved.kind) {
    case "pending": {
      if (pending?.stateFrom === "node") {
        return undefined;
      }
      const { newest } = pending ?? {};
      const run =
        pending?.stateFrom === "view" && newest
          ? await pendingSimulationBase({ chain, context }, execution, { pending, newest }, hint)
          : await sealedExecutionBase({ chain, context }, execution, heads.latest, hint);
      return pending ? { run, pending: pending.mode } : { run };
    }
    case "final":
    case "recent":
    case "outsideRing":
    case "hash":
      return { run: await sealedExecutionBase({ chain, context }, execution, resolved, hint) };
    case "aboveHead":
      throw headerNotFound();
    case "tagUnavailable":
      return undefined;
  }
};

/** Simulates on a pending block by the hash under which it was shown, as on a sealed block. */
const atShownBlock = (
  { context }: Pick<MethodInput, "context">,
  execution: NonNullable<MethodChain["execution"]>,
  shown: PendingView,
  hint: PrefetchHint | undefined,
): Base | undefined => {
  const { newest } = shown;
  return (
    newest && { run: pendingCallBase({ context }, execution, { pending: shown, newest }, hint), pending: shown.mode }
  );
};

const shownBlock = (resolved: ResolvedBlock, pending: PendingView | undefined): PendingView | undefined =>
  resolved.kind === "hash" ? pending?.atHash(resolved.hash) : undefined;
