import type { Context } from "../core/context.ts";
import type { RpcResponse } from "../core/rpcSource.ts";
import { NODE_SPAN, type Tracer } from "../core/trace.ts";
import type { Call } from "../jsonrpc/call.ts";
import type { Outcome } from "../jsonrpc/dispatch.ts";

export interface CallTracesOptions {
  readonly chain: string;
  readonly methodLabel: (method: string) => string;
  readonly tracer: Tracer;
}

/** The source of a response: a cache, or the reason why a node was asked. */
const cacheOf = ({ status: { hit, fwd } }: RpcResponse): string | undefined => hit ?? fwd;

/** Records one span per call. */
export class CallTraces {
  readonly #options: CallTracesOptions;

  constructor(options: CallTracesOptions) {
    this.#options = options;
  }

  /** Begins the span of a call, and returns the context that has it. */
  begin({ method }: Call, context: Context): Context {
    const { chain, methodLabel, tracer } = this.#options;
    const label = methodLabel(method);
    const span = tracer.begin(label, context.traceHeaders, {
      "rpc.system": "jsonrpc",
      "rpc.method": label,
      "forebay.chain": chain,
    });
    return span === undefined ? context : context.with({ span });
  }

  /** Ends the span of a call. */
  end({ context: { span }, reply, error }: Outcome<Pick<Partial<Context>, "span">, RpcResponse>): void {
    if (span === undefined) {
      return;
    }
    span.end(
      {
        "forebay.cache": reply && cacheOf(reply),
        "forebay.node": reply?.node,
        "forebay.attempts": span.count(NODE_SPAN),
        "rpc.jsonrpc.error_code": error?.code,
      },
      error,
    );
  }
}
