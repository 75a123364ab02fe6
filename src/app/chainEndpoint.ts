import type { ChainConfig } from "../config/schema.ts";
import type { InboundRequest } from "../core/context.ts";
import { type Endpoint, type PassThrough, toEndpointResponse } from "../http/endpoint.ts";
import { ProofHeader } from "../http/proofHeader.ts";
import { whenKnown } from "../jsonrpc/call.ts";
import { CODES, RpcError } from "../jsonrpc/rpcError.ts";
import type { ChainDispatch } from "./chainDispatch.ts";
import type { ChainSources } from "./chainSources.ts";
import type { RequestViews } from "./requestViews.ts";
import type { Shared } from "./shared.ts";
import type { Upstreams } from "./upstreams.ts";

export interface ChainEndpointOptions {
  readonly config: ChainConfig;
  readonly shared: Pick<Shared, "webSockets">;
  readonly upstreams: Pick<Upstreams, "heads">;
  readonly views: RequestViews;
  readonly dispatch: ChainDispatch;
  readonly passthrough: PassThrough | undefined;
  readonly gate: ChainSources["gate"];
}

const REQUIRE_HEADER = "x-forebay-require";

/** Whether the client requires proven answers. Another value of the header must not get any answer. */
const requiresProof = ({ caller, received }: InboundRequest): boolean => {
  const required = received.headers[REQUIRE_HEADER];
  if (required !== undefined && required !== "proven") {
    throw new RpcError(CODES.INVALID_REQUEST, `Invalid request: ${REQUIRE_HEADER} must be proven`, { status: 400 });
  }
  return required !== undefined || caller.requiresProof === true;
};

/** Creates the endpoint of one chain: JSON-RPC over HTTP and WebSocket. Any other request is passed through. */
export const createChainEndpoint = (options: ChainEndpointOptions): Endpoint => {
  const { dispatch, passthrough, gate, views } = options;
  const { heads } = options.upstreams;
  const proofHeader = new ProofHeader();

  /** A request waits while this process must not answer from its view, or while the heads of an idle chain are read. */
  const heldBy = (): Promise<void> | undefined => gate?.wait() ?? heads.catchingUp;

  const handle: Endpoint["handle"] = (body, request) => {
    heads.markActive();
    const held = heldBy();
    if (held !== undefined) {
      return held.then(() => handle(body, request));
    }
    const known = views.untilKnown(request);
    return known === undefined ? answer(body, request) : known.then(() => answer(body, request));
  };

  const answer: Endpoint["handle"] = (body, request) => {
    const first = heads.current();
    const context = views.contextOf(request);
    const result =
      context === undefined
        ? dispatch.beforeHead(body, request)
        : (requiresProof(request) ? dispatch.proven : dispatch.inView)(body, context);
    return whenKnown(result, (known) =>
      toEndpointResponse(known, request, { first, last: heads.current(), proofHeader }),
    );
  };

  const upgrade: Endpoint["upgrade"] = (request, socket, head, admitted) =>
    options.shared.webSockets.accept(
      { request, stream: socket, head, admitted, chain: options.config.name },
      async (body, message) => {
        heads.markActive();
        for (let held = heldBy(); held !== undefined; held = heldBy()) {
          await held;
        }
        await views.untilKnown(message);
        const context = views.contextOf(message);
        if (context === undefined) {
          return dispatch.beforeHead(body, message);
        }
        return (requiresProof(message) ? dispatch.proven : dispatch.inView)(body, context);
      },
    );

  return { chain: options.config.name, passthrough, handle, upgrade };
};
