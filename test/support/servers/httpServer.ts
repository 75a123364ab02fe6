import type { InboundRequest } from "../../../src/core/context.ts";
import type { Endpoint } from "../../../src/http/endpoint.ts";
import { HttpServer, type HttpServerOptions } from "../../../src/http/httpServer.ts";
import type { Reply } from "../../../src/jsonrpc/call.ts";
import { createDispatch, type Handler } from "../../../src/jsonrpc/dispatch.ts";
import { RpcError } from "../../../src/jsonrpc/rpcError.ts";
import { createTelemetry } from "../../../src/telemetry/telemetry.ts";

type TestHandler = Handler<InboundRequest, Reply>;

export interface EndpointOptions {
  readonly methods: Readonly<Record<string, TestHandler>>;
  readonly maxBatch?: number;
  readonly maxResponseBytes?: number;
}

/** Creates an endpoint of the real dispatch with a few methods. Any other method returns its name. */
export const createTestEndpoint = ({
  methods,
  maxBatch = 1_000,
  maxResponseBytes = 1_000_000,
}: EndpointOptions): Endpoint => {
  const dispatch = createDispatch<InboundRequest, Reply>({
    lookup: (method) => (Object.hasOwn(methods, method) ? methods[method] : undefined),
    forward: async ({ method }) => ({ body: Buffer.from(JSON.stringify(`forwarded ${method}`)) }),
    authorize: ({ method }, { caller }) => caller.authorize?.(method),
    onInvalid: ({ caller }) => caller.charge?.(1, "invalid"),
    maxBatch,
    maxResponseBytes,
    onError: () => {},
  });
  return {
    handle: async (body, request) => ({
      ...(await dispatch(body, request)),
      cacheStatus: "forebay; hit; detail=local",
    }),
  };
};

/** Starts a real server on a free port. */
export const startHttpServer = async (endpoint: Endpoint, options: Partial<HttpServerOptions> = {}) => {
  const { log, metrics, registry } = createTelemetry({ level: "silent" });
  const errors: unknown[] = [];
  log.warn = ({ err }: { readonly err?: unknown }) => errors.push(err);
  const server = await HttpServer.listen({
    routes: new Map(["/", "/base", "/8453"].map((path) => [path, endpoint])),
    host: "127.0.0.1",
    port: 0,
    keepAliveMs: 75_000,
    writeTimeoutMs: 30_000,
    maxBodyBytes: 10_000,
    maxConnectionsPerAddress: 10_000,
    corsOrigins: "*",
    about: () => '{"name":"forebay"}',
    telemetry: { log, metrics },
    ...options,
  });
  const { port } = server;
  return {
    port,
    url: `http://127.0.0.1:${port}`,
    startDraining: () => server.startDraining(),
    close: (timeoutMs: number) => server.close(timeoutMs),
    registry,
    errors,
  };
};

export const json = { "content-type": "application/json" };

/** The text of a call. */
export const call = (method: string, params: unknown[] = []): string =>
  JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });

/** A result that is large enough to be compressed. */
export const LARGE = `"${"forebay ".repeat(1_000)}"`;

const reply = (text: string): Reply => ({ body: Buffer.from(text) });

/** A list of numbers in parts. The stream throws at part `failAt`. */
const streamed = (parts: number, failAt = Number.POSITIVE_INFINITY): Reply => ({
  body: (async function* () {
    for (let part = 0; part < parts; part++) {
      if (part === failAt) {
        throw new Error("broken on the way");
      }
      yield Buffer.from(part === 0 ? "[0" : `,${part}`);
    }
    yield Buffer.from("]");
  })(),
});

/** Starts a server whose methods return each kind of result. */
export const startTestServer = (options: Partial<HttpServerOptions> = {}) =>
  startHttpServer(
    createTestEndpoint({
      methods: {
        one: async () => reply("1"),
        large: async () => reply(LARGE),
        streamed: async () => streamed(5_000),
        broken: async () => streamed(5_000, 2_500),
        busy: async () => {
          throw new RpcError(-32603, "busy", { status: 503, retryAfterSeconds: 2 });
        },
      },
    }),
    options,
  );
