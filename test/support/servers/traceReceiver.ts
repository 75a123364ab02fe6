import { z } from "zod";
import { startFront } from "../fakes/front.ts";

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
  const front = await startFront(async (text) => {
    const body = exported.parse(JSON.parse(text));
    spans.push(...body.resourceSpans.flatMap(({ scopeSpans }) => scopeSpans.flatMap((scope) => scope.spans)));
    return "{}";
  });
  t.after(() => front.close());
  return { spans, endpoint: `${front.url}/v1/traces` };
};
