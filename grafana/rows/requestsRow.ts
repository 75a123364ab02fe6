import { CHAIN, INSTANCE, named, quantile, rates, value } from "../queries.ts";
import type { Row } from "../row.ts";

export const requestsRow: Row = {
  title: "Requests",
  panels: [
    {
      title: "Calls by method",
      description: "Calls a second as clients send them; a batch counts each of its items. Unknown methods are other.",
      unit: "reqps",
      stacked: true,
      queries: [rates("requests_total", CHAIN, "method")],
    },
    {
      title: "Calls by outcome",
      description: "What clients received. Anything but ok that grows is worth a look at the Upstream row.",
      unit: "reqps",
      stacked: true,
      queries: [rates("requests_total", CHAIN, "outcome")],
    },
    {
      title: "Latency",
      description: "From call to answer, all methods together.",
      unit: "s",
      queries: [0.5, 0.95, 0.99].map((share) => quantile(share, "request_seconds", CHAIN)),
    },
    {
      title: "Latency by method, 99th percentile",
      description: "Which method is slow. Wide log queries and simulations are expected at the top.",
      unit: "s",
      queries: [quantile(0.99, "request_seconds", CHAIN, "method")],
    },
    {
      title: "HTTP",
      description: "Responses a second by status, and requests that are being answered now.",
      unit: "short",
      queries: [
        rates("http_responses_total", INSTANCE, "status"),
        named("in flight", value("sum", "requests_in_flight", INSTANCE, "job")),
      ],
    },
    {
      title: "Body sizes, 95th percentile",
      description: "Requests as received, responses before compression.",
      unit: "bytes",
      queries: [
        named("request", quantile(0.95, "request_bytes", INSTANCE)),
        named("response", quantile(0.95, "response_bytes", INSTANCE)),
      ],
    },
    {
      title: "Refused",
      description:
        "Calls refused before they were answered, and rate limits that failed open because their store was gone.",
      unit: "cps",
      queries: [rates("access_refused_total", INSTANCE, "reason"), rates("limiter_failures_total", INSTANCE)],
    },
  ],
};
