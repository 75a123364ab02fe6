import { CHAIN, INSTANCE, named, quantile, rates, shares, value } from "../queries.ts";
import type { Row } from "../row.ts";

export const requestsRow: Row = {
  title: "Requests",
  panels: [
    {
      title: "Calls by method",
      description: "Calls a second from clients. Each item of a batch counts. Unknown methods are other.",
      unit: "reqps",
      stacked: true,
      queries: [rates("requests_total", CHAIN, "method")],
    },
    {
      title: "Calls by outcome",
      description: "Results that clients received. If one other than ok grows, check the Upstream row.",
      unit: "reqps",
      stacked: true,
      queries: [rates("requests_total", CHAIN, "outcome")],
    },
    {
      title: "Proofs of answers",
      description:
        "Answers by what is verified of them, and calls whose answer must be proven and is not, by reason. notAgreed: see the Heads row.",
      unit: "reqps",
      queries: [rates("proof_answers_total", CHAIN, "label"), rates("not_proven_total", CHAIN, "reason")],
    },
    {
      title: "Shares of proven, checked and stated answers",
      description:
        "Share of the answers by what is verified of them (x-forebay-proof). Answers of methods that no header proves are stated.",
      unit: "percentunit",
      stacked: true,
      queries: [shares("proof_answers_total", "label")],
    },
    {
      title: "Latency",
      description: "Duration of a call, over all methods.",
      unit: "s",
      queries: [0.5, 0.95, 0.99].map((share) => quantile(share, "request_seconds", CHAIN)),
    },
    {
      title: "Latency by method, 99th percentile",
      description: "Duration of a call by method. Wide log queries and simulations are normally the slowest.",
      unit: "s",
      queries: [quantile(0.99, "request_seconds", CHAIN, "method")],
    },
    {
      title: "HTTP",
      description: "Responses a second by status, and requests in flight.",
      unit: "short",
      queries: [
        rates("http_responses_total", INSTANCE, "status"),
        named("in flight", value("sum", "requests_in_flight", INSTANCE, "job")),
      ],
    },
    {
      title: "Refused",
      description:
        "Calls and connections rejected by access control, charged calls, rate limits that were not applied because their store failed, and failed pass-through.",
      unit: "cps",
      queries: [
        rates("access_refused_total", INSTANCE, "reason"),
        rates("access_charged_total", INSTANCE, "reason"),
        rates("limiter_failures_total", INSTANCE),
        rates("pass_through_failures_total", CHAIN, "reason"),
      ],
    },
  ],
};
