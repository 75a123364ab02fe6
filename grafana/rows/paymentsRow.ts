import { INSTANCE, named, quantile, rate, rates } from "../queries.ts";
import type { Row } from "../row.ts";

export const paymentsRow: Row = {
  title: "Payments",
  panels: [
    {
      title: "Requests with a price by result",
      description:
        "Requests of clients without a key (access.payment). `unpaid` got a challenge. `failed` and `left` were not charged. `unknown`: the facilitator did not say whether it settled.",
      unit: "reqps",
      stacked: true,
      queries: [rates("payments_total", INSTANCE, "result")],
    },
    {
      title: "Settled amount",
      description: "Tokens an hour that payers transferred.",
      unit: "short",
      queries: [{ expr: `3600 * sum(${rate("payment_tokens_total", INSTANCE)})`, legend: "tokens an hour" }],
    },
    {
      title: "Facilitator",
      description: "Duration of verifications and settlements.",
      unit: "s",
      queries: [
        quantile(0.5, "facilitator_seconds", INSTANCE, "operation"),
        quantile(0.99, "facilitator_seconds", INSTANCE, "operation"),
      ],
    },
    {
      title: "Facilitator failures",
      description:
        "Requests a second that the facilitator did not answer. Clients get 503. Without an answer to `settle`, they may be charged.",
      unit: "cps",
      queries: [named("{{operation}}", rates("facilitator_failures_total", INSTANCE, "operation"))],
    },
  ],
};
