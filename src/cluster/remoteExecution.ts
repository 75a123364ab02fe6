import { createProgress, type RequestProgress, type StateReadContext, spendUnits } from "../core/context.ts";
import type { BlockId } from "../core/heads.ts";
import type { RpcResponse } from "../core/rpcSource.ts";
import type { StateSource } from "../core/stateReader.ts";
import type { PendingState } from "../pending/pendingState.ts";
import type { ExecutionBase, ExecutionScope, RunKind, Simulator } from "../simulation/simulator.ts";
import type { PrefetchHint } from "../state/fetch/prefetch.ts";
import type { MainChannel } from "./chainCopy.ts";
import type { HostedExecution } from "./chainHost.ts";
import type { RunReads } from "./chainProtocol.ts";

/** The state after a sealed block, in the main process. */
class RemoteBlockState implements StateSource {
  readonly id: string;
  readonly base: BlockId;
  readonly hint: PrefetchHint | undefined;
  readonly context: StateReadContext;

  constructor(base: BlockId, hint: PrefetchHint | undefined, context: StateReadContext) {
    this.id = base.hash;
    this.base = base;
    this.hint = hint;
    this.context = context;
  }

  read(): never {
    throw new Error("the main process reads the state of executions");
  }
}

const isPendingState = (source: StateSource): source is PendingState => "viewId" in source;

const splitState = (source: StateSource): { readonly state: RemoteBlockState; readonly viewId: string | undefined } => {
  const sealed = isPendingState(source) ? source.base : source;
  if (!(sealed instanceof RemoteBlockState)) {
    throw new Error("the state of a remote execution is in another process");
  }
  return { state: sealed, viewId: isPendingState(source) ? source.viewId : undefined };
};

/** Gives each request of a client an id, which no other process uses. */
class RequestIds {
  readonly #ids = new WeakMap<RequestProgress, string>();
  #count = 0;

  idOf(request: RequestProgress): string {
    const known = this.#ids.get(request);
    if (known !== undefined) {
      return known;
    }
    this.#count++;
    const id = `${process.pid}:${this.#count}`;
    this.#ids.set(request, id);
    return id;
  }
}

/** Creates the execution of one chain in the main process. */
export const createRemoteExecution = (chain: string, main: MainChannel): HostedExecution => {
  const requests = new RequestIds();
  const run =
    (kind: RunKind) =>
    async (paramsText: Uint8Array, base: ExecutionBase, { signal, caller }: ExecutionScope): Promise<RpcResponse> => {
      const { state, viewId } = splitState(base.source);
      const { block, firstTimestamp } = base;
      const { caller: reader, bypassCache, noCache, progress = createProgress() } = state.context;
      const onReport = (report: unknown): void => {
        const { calls, units } = report as RunReads;
        progress.stateReads += calls;
        if (calls > 0) {
          reader.charge?.(calls, "stateReads");
        }
        spendUnits({ caller: reader, progress }, units);
      };
      return main.call(
        "run",
        {
          chain,
          kind,
          clientId: caller.clientId,
          paramsText,
          block,
          firstTimestamp,
          state: {
            ...{ base: state.base, hint: state.hint, viewId, bypassCache: bypassCache || noCache },
            ...{ requestId: requests.idOf(progress), stateReads: progress.stateReads },
          },
        },
        { signal, onReport },
      );
    };
  const simulator: Simulator = {
    simulate: run("simulate"),
    call: run("call"),
    estimateGas: run("estimateGas"),
    createAccessList: run("createAccessList"),
    trace: () => Promise.reject(new Error("only the main process learns answers")),
  };
  return { simulator, stateAt: (block, hint, context) => new RemoteBlockState(block, hint, context) };
};
