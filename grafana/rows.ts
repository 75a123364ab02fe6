/** Grafana's names of units. */
type Unit = "reqps" | "ops" | "s" | "bytes" | "percentunit" | "short" | "none" | "cps";

interface Query {
  readonly expr: string;
  readonly legend: string;
}

export interface Panel {
  readonly title: string;
  /** What the reader learns, and what to do when it looks wrong. */
  readonly description: string;
  readonly unit: Unit;
  readonly queries: readonly Query[];
  readonly stacked?: true;
}

export interface Row {
  readonly title: string;
  readonly panels: readonly Panel[];
}

const INSTANCE = 'instance=~"$instance"';
const CHAIN = `chain=~"$chain",${INSTANCE}`;
const NODE = `node=~"$node",${CHAIN}`;
const WINDOW = "[$__rate_interval]";

const rate = (metric: string, labels: string): string => `rate(forebay_${metric}{${labels}}${WINDOW})`;

/** Events a second, one line for each value of `by`. */
const rates = (metric: string, labels: string, ...by: string[]): Query => ({
  expr: by.length === 0 ? `sum(${rate(metric, labels)})` : `sum by (${by.join(", ")}) (${rate(metric, labels)})`,
  legend: by.length === 0 ? metric.replace(/_total$/, "") : by.map((label) => `{{${label}}}`).join(" "),
});

const quantile = (share: number, metric: string, labels: string, ...by: string[]): Query => ({
  expr: `histogram_quantile(${share}, sum by (${["le", ...by].join(", ")}) (${rate(`${metric}_bucket`, labels)}))`,
  legend: [...by.map((label) => `{{${label}}}`), `p${share * 100}`].join(" "),
});

const value = (aggregate: "sum" | "max" | "min", metric: string, labels: string, ...by: string[]): Query => ({
  expr: `${aggregate} by (${by.join(", ")}) (forebay_${metric}{${labels}})`,
  legend: by.map((label) => `{{${label}}}`).join(" "),
});

const named = (legend: string, query: Query): Query => ({ ...query, legend });

const hitRatio = (by: string): string =>
  `1 - sum by (${by}) (${rate("cache_lookups_total", `outcome="miss",${CHAIN}`)})` +
  ` / sum by (${by}) (${rate("cache_lookups_total", `outcome!="bypass",${CHAIN}`)})`;

export const ROWS: readonly Row[] = [
  {
    title: "Requests",
    panels: [
      {
        title: "Calls by method",
        description:
          "Calls a second as clients send them; a batch counts each of its items. Unknown methods are other.",
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
  },
  {
    title: "Cache",
    panels: [
      {
        title: "Hit ratio by class",
        description: "Share of look-ups that no node was asked for. Look-ups that were told to bypass are left out.",
        unit: "percentunit",
        queries: [
          { expr: hitRatio("class"), legend: "{{class}}" },
          { expr: hitRatio("job"), legend: "all" },
        ],
      },
      {
        title: "Look-ups by outcome",
        description: "memory and redis are hits, absent is a null that is still true, miss asked a node.",
        unit: "ops",
        stacked: true,
        queries: [rates("cache_lookups_total", CHAIN, "outcome")],
      },
      {
        title: "Kept and evicted",
        description: "Answers kept by class, and entries dropped to make room: steady evictions call for more memory.",
        unit: "ops",
        queries: [
          rates("cache_stored_total", CHAIN, "class"),
          named("evicted", rates("cache_evictions_total", INSTANCE)),
        ],
      },
      {
        title: "Memory cache",
        description: "Bytes held by each process.",
        unit: "bytes",
        queries: [value("sum", "cache_bytes", INSTANCE, "instance")],
      },
      {
        title: "Entries",
        description: "Entries in the memory cache of each process.",
        unit: "short",
        queries: [value("sum", "cache_entries", INSTANCE, "instance")],
      },
      {
        title: "Age at hit",
        description:
          "How old an entry was when it was served: short ages come from clients at the head, long ones from history.",
        unit: "s",
        queries: [0.5, 0.9].map((share) => quantile(share, "cache_hit_age_seconds", INSTANCE)),
      },
      {
        title: "Redis",
        description: "1 while Redis answers in time. Errors by reason: each was a miss, none failed a request.",
        unit: "short",
        queries: [
          named("{{instance}} up", value("min", "redis_up", INSTANCE, "instance")),
          rates("redis_errors_total", INSTANCE, "reason"),
        ],
      },
      {
        title: "Redis latency, 99th percentile",
        description: "By operation. It ends at the deadline of Redis (50 ms unless set).",
        unit: "s",
        queries: [quantile(0.99, "redis_seconds", INSTANCE, "operation")],
      },
    ],
  },
  {
    title: "Logs",
    panels: [
      {
        title: "Spans",
        description: "Ranges asked from nodes by outcome, and ranges that were halved by what was halved.",
        unit: "ops",
        queries: [
          rates("log_spans_total", CHAIN, "outcome"),
          named("halved by {{dimension}}", rates("log_splits_total", CHAIN, "dimension")),
        ],
      },
      {
        title: "Segments by source",
        description: "Segments of 128 blocks by where they came from.",
        unit: "ops",
        stacked: true,
        queries: [rates("log_segments_total", CHAIN, "source")],
      },
      {
        title: "Range of a query",
        description: "Blocks that one eth_getLogs asked for.",
        unit: "short",
        queries: [0.5, 0.95, 0.99].map((share) => quantile(share, "log_range_blocks", CHAIN)),
      },
      {
        title: "Learned range limit",
        description: "Blocks that a node allows in one query, learned from its errors; 0 for none.",
        unit: "short",
        queries: [value("min", "upstream_span_limit_blocks", NODE, "chain", "node")],
      },
    ],
  },
  {
    title: "Upstream",
    panels: [
      {
        title: "Requests by node and outcome",
        description: "HTTP requests to nodes. What is not ok names the node's fault.",
        unit: "reqps",
        stacked: true,
        queries: [rates("upstream_requests_total", NODE, "node", "outcome")],
      },
      {
        title: "Calls by method",
        description: "What providers bill: batch items count singly.",
        unit: "cps",
        stacked: true,
        queries: [rates("upstream_calls_total", NODE, "method")],
      },
      {
        title: "Latency by node, 95th percentile",
        description: "Duration of a request to a node.",
        unit: "s",
        queries: [quantile(0.95, "upstream_seconds", NODE, "node")],
      },
      {
        title: "Retries and hedges",
        description: "Requests sent again, and requests sent a second time before the first answered.",
        unit: "reqps",
        queries: [
          named("{{chain}} retries", rates("upstream_retries_total", CHAIN, "chain")),
          named("{{chain}} hedges", rates("upstream_hedges_total", CHAIN, "chain")),
        ],
      },
      {
        title: "Lag by node",
        description: "Blocks that a node is behind the served head. A node that lags is asked for old blocks only.",
        unit: "short",
        queries: [value("max", "upstream_lag_blocks", NODE, "chain", "node")],
      },
      {
        title: "Nodes that are not asked",
        description: "1 while a node's breaker is open.",
        unit: "none",
        queries: [value("max", "upstream_breaker_open", NODE, "chain", "node")],
      },
    ],
  },
  {
    title: "Heads",
    panels: [
      {
        title: "Served heads",
        description: "Block number by tag. Replicas may differ by a block, never by more for long.",
        unit: "none",
        queries: [named("{{chain}} {{tag}}", value("max", "head", CHAIN, "chain", "tag"))],
      },
      {
        title: "Age of the head",
        description: "Seconds since the served head's own timestamp.",
        unit: "s",
        queries: [value("max", "head_age_seconds", CHAIN, "chain", "instance")],
      },
      {
        title: "Heads of the nodes",
        description: "Newest block that each node announced.",
        unit: "none",
        queries: [value("max", "upstream_head", NODE, "chain", "node")],
      },
      {
        title: "Reorganisations",
        description: "Reorganisations a second, and the depth of the deepest tenth.",
        unit: "short",
        queries: [
          rates("reorgs_total", CHAIN, "chain"),
          named("{{chain}} depth p90", quantile(0.9, "reorg_depth_blocks", CHAIN, "chain")),
        ],
      },
    ],
  },
  {
    title: "Pending",
    panels: [
      {
        title: "Feed messages by decision",
        description: "next and first are good; gaps, duplicates and faults are told by name.",
        unit: "cps",
        queries: [rates("feed_messages_total", CHAIN, "decision")],
      },
      {
        title: "Age of the feed",
        description: "Time since the last good message. Past the larger of three block times and 2 s it is stale.",
        unit: "s",
        queries: [value("max", "feed_age_seconds", CHAIN, "chain", "instance")],
      },
      {
        title: "Feed connections",
        description: "Open connections, and gaps and connections made again a second.",
        unit: "short",
        queries: [
          named("{{chain}} open", value("min", "feed_connected", CHAIN, "chain")),
          named("{{chain}} gaps", rates("feed_gaps_total", CHAIN, "chain")),
          named("{{chain}} reconnects", rates("feed_reconnects_total", CHAIN, "chain")),
        ],
      },
      {
        title: "Lead over the sealed head",
        description: "Pending block's number minus the served head: 1 in good order.",
        unit: "short",
        queries: [value("max", "feed_lead_blocks", CHAIN, "chain")],
      },
      {
        title: "Answers at pending by mode",
        description: "live and native are good. stale or unproven answers come from a node.",
        unit: "reqps",
        stacked: true,
        queries: [rates("pending_answers_total", CHAIN, "mode")],
      },
      {
        title: "Mismatches and vanished transactions",
        description: "What was computed here and differed, and pre-confirmed transactions that no block holds.",
        unit: "ops",
        queries: [
          rates("pending_mismatches_total", CHAIN, "what"),
          named("vanished", rates("pending_vanished_total", CHAIN)),
        ],
      },
      {
        title: "Executing a flashblock",
        description: "Above 100 ms a view is published unproven.",
        unit: "s",
        queries: [0.5, 0.99].map((share) => quantile(share, "pending_execute_seconds", CHAIN)),
      },
    ],
  },
  {
    title: "Simulation",
    panels: [
      {
        title: "Runs by kind and outcome",
        description: "Runs in a worker, and those that their deadline ended.",
        unit: "ops",
        queries: [
          rates("simulate_runs_total", CHAIN, "kind", "outcome"),
          named("deadline", rates("simulate_deadline_total", CHAIN)),
        ],
      },
      {
        title: "Duration, 95th percentile",
        description: "By kind of run; waiting for state is in it.",
        unit: "s",
        queries: [quantile(0.95, "simulate_seconds", CHAIN, "kind")],
      },
      {
        title: "Fetching state",
        description: "Rounds that a run needed, and values fetched from nodes a second.",
        unit: "short",
        queries: [
          named("rounds p95", quantile(0.95, "simulate_rounds", CHAIN)),
          named("values a second", rates("simulate_fetched_total", CHAIN)),
        ],
      },
      {
        title: "Workers",
        description: "Alive and busy. All busy for long: runs wait, then clients hear 503.",
        unit: "short",
        queries: [
          named("{{chain}} alive", value("sum", "workers", CHAIN, "chain")),
          named("{{chain}} busy", value("sum", "workers_busy", CHAIN, "chain")),
        ],
      },
    ],
  },
  {
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
  },
  {
    title: "Process",
    panels: [
      {
        title: "Event loop delay",
        description: "99th percentile since the last scrape. Above 50 ms something computes where it should not.",
        unit: "s",
        queries: [value("max", "event_loop_delay_seconds", INSTANCE, "instance")],
      },
      {
        title: "Memory",
        description: "Resident memory of each process.",
        unit: "bytes",
        queries: [value("max", "resident_memory_bytes", INSTANCE, "instance")],
      },
      {
        title: "Reloads",
        description: "Configuration reloads by outcome. One that is refused leaves the old configuration in force.",
        unit: "short",
        queries: [
          {
            expr: `sum by (outcome) (increase(forebay_config_reloads_total{${INSTANCE}}${WINDOW}))`,
            legend: "{{outcome}}",
          },
        ],
      },
    ],
  },
];
