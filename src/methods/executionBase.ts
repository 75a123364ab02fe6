import type { BlockId, HeaderFields } from "../core/heads.ts";
import type { RequestContext } from "../core/rpcSource.ts";
import type { PendingBlock, PendingView } from "../core/view.ts";
import { formatQuantity } from "../ethereum/hex.ts";
import type { PrefetchHint } from "../evm/prefetch.ts";
import { createCall } from "../jsonrpc/call.ts";
import { pendingState } from "../pending/pendingState.ts";
import { parseParent } from "../simulation/parentBlock.ts";
import type { ParentBlock } from "../simulation/simulatedHeader.ts";
import type { RunBase } from "../simulation/simulator.ts";
import { headerNotFound } from "./headerNotFound.ts";
import type { Chain } from "./method.ts";
import { isRecord } from "./paramSpec.ts";

type Executing = NonNullable<Chain["execution"]>;

const decoder = new TextDecoder();

/** By number or by hash; a hash alone may be of any fork. */
type Place = { readonly number: bigint; readonly hash?: BlockId["hash"] } | { readonly hash: BlockId["hash"] };

const readHeader = async ({ reads }: Chain, context: RequestContext, block: Place): Promise<HeaderFields> => {
  const { hash } = block;
  const known = "number" in block ? context.view.heads.header(block.number) : undefined;
  if (known !== undefined && (hash === undefined || known.hash === hash)) return known;
  const call =
    "number" in block && hash === undefined
      ? createCall("eth_getBlockByNumber", [formatQuantity(block.number), false])
      : createCall("eth_getBlockByHash", [hash, false]);
  const retention = hash === undefined ? "final" : "byHash";
  const canonicalParams = JSON.stringify([call.method, call.params]);
  const place = "number" in block ? { block: { number: block.number } } : {};
  const { body } = await reads.request({ ...call, ...place, retention, canonicalParams, blockField: "hash" }, context);
  const header: unknown = body instanceof Uint8Array ? JSON.parse(decoder.decode(body)) : null;
  if (!isRecord(header)) throw headerNotFound();
  return header;
};

/** A run on a sealed block's state. */
export const sealedExecutionBase = async (
  chain: Chain,
  { stateAt }: Executing,
  context: RequestContext,
  block: Place,
  wish: PrefetchHint | undefined,
): Promise<RunBase> => {
  const parent = parseParent(await readHeader(chain, context, block));
  return { block: parent, source: stateAt({ number: parent.number, hash: parent.hash }, wish) };
};

const formatPending = (block: PendingBlock): ParentBlock => ({
  number: block.number,
  hash: block.hash,
  timestamp: block.environment.timestamp,
  miner: block.environment.feeRecipient,
  gasLimit: block.environment.gasLimit,
  gasUsed: block.gasUsed,
  difficulty: 0n,
  mixHash: block.environment.prevRandao,
  extraData: block.environment.extraData,
  baseFeePerGas: block.environment.baseFeePerGas,
  blobGasUsed: block.blobGasUsed,
  excessBlobGas: 0n,
  parentBeaconBlockRoot: block.environment.parentBeaconBlockRoot,
});

/** A call in the pending block: its number, time, base fee and prevRandao, and the state that its transactions left. */
export const pendingCallBase = (
  { stateAt }: Executing,
  pending: PendingView,
  newest: PendingBlock,
  wish: PrefetchHint | undefined,
): RunBase => ({ block: formatPending(newest), source: pendingState(pending, stateAt(pending.base, wish)) });

/** A simulation on the pending block: the first simulated block has its number and time, or (`next`) stands on it. */
export const pendingSimulationBase = async (
  chain: Chain,
  execution: Executing,
  context: RequestContext,
  pending: PendingView,
  newest: PendingBlock,
  wish: PrefetchHint | undefined,
): Promise<RunBase> => {
  const onIt = pendingCallBase(execution, pending, newest, wish);
  if (chain.pendingNumber === "next") return onIt;
  const below = pending.blocks.at(-2);
  const parent = below ? formatPending(below) : parseParent(await readHeader(chain, context, pending.base));
  return { ...onIt, block: parent, firstTimestamp: newest.environment.timestamp };
};
