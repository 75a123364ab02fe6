import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { z } from "zod";

const value = z.object({ stringValue: z.string().optional(), intValue: z.coerce.number().optional() });
const spanSchema = z.object({
  traceId: z.string(),
  spanId: z.string(),
  parentSpanId: z.string().optional(),
  traceState: z.string().optional(),
  name: z.string(),
  attributes: z.array(z.object({ key: z.string(), value })),
  status: z.object({ code: z.number().optional() }),
});
const exported = z.object({
  resourceSpans: z.array(z.object({ scopeSpans: z.array(z.object({ spans: z.array(spanSchema) })) })),
});
export type ReceivedSpan = z.infer<typeof spanSchema>;

/** Starts a receiver of OTLP over HTTP with JSON. */
export const startTraceReceiver = async (t: { after(end: () => void): void }) => {
  const spans: ReceivedSpan[] = [];
  const server = createServer(async (request, response) => {
    const chunks = await request.toArray();
    const body = exported.parse(JSON.parse(Buffer.concat(chunks).toString()));
    spans.push(...body.resourceSpans.flatMap(({ scopeSpans }) => scopeSpans.flatMap((scope) => scope.spans)));
    response.writeHead(200, { "content-type": "application/json" }).end("{}");
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  const address = server.address();
  assert.ok(typeof address === "object" && address !== null);
  return { spans, endpoint: `http://127.0.0.1:${address.port}/v1/traces` };
};
