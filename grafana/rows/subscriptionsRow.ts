import { CHAIN, INSTANCE, named, rates, value } from "../queries.ts";
import type { Row } from "../row.ts";

export const subscriptionsRow: Row = {
  title: "Subscriptions",
  panels: [
    {
      title: "Open",
      description: "WebSocket connections, and subscriptions by kind.",
      unit: "short",
      queries: [
        named("connections", value("sum", "websockets", INSTANCE, "job")),
        value("sum", "subscriptions", CHAIN, "kind"),
      ],
    },
    {
      title: "Notifications",
      description: "Sent by kind, and connections closed because their reader was slow.",
      unit: "cps",
      queries: [
        rates("delivered_total", CHAIN, "kind"),
        named("slow, closed", rates("slow_consumers_closed_total", INSTANCE)),
      ],
    },
  ],
};
