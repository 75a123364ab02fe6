import { CHAIN, INSTANCE, NODE, named, quantile, rate, totals, value } from "../queries.ts";
import type { Level, Row } from "../row.ts";

const ok = (...[orange, red]: readonly [number, number]): readonly Level[] => [
  { from: null, color: "green" },
  { from: orange, color: "orange" },
  { from: red, color: "red" },
];

/** For values of which a high one is good. */
const low = (orange: number, green: number): readonly Level[] => [
  { from: null, color: "red" },
  { from: orange, color: "orange" },
  { from: green, color: "green" },
];

const neutral: readonly Level[] = [{ from: null, color: "text" }];

const byChain = (metric: string, labels = ""): string =>
  `sum by (chain) (${rate(metric, labels === "" ? CHAIN : `${labels},${CHAIN}`)})`;

/** Share of the calls of a chain that end without a fault of forebay or of all nodes. */
const AVAILABILITY = `1 - ${byChain("requests_total", 'outcome=~"unavailable|timeout|internal"')} / ${byChain("requests_total")}`;

const HIT_RATIO = `1 - ${byChain("cache_lookups_total", 'outcome="miss"')} / ${byChain("cache_lookups_total", 'outcome!="bypass"')}`;

const ofNode = (metric: string): string => `max by (chain, node) (forebay_${metric}{${NODE}})`;

/** 0 for a node that every replica uses. */
const FAULTS_OF_NODE = ["upstream_breaker_open", "upstream_hung", "upstream_rejecting", "upstream_suspended"]
  .map(ofNode)
  .join(" + ");
const NODES = `count by (chain) (${ofNode("upstream_breaker_open")})`;
const NODES_UP = `count by (chain) ((${FAULTS_OF_NODE} == 0) unless ${ofNode("upstream_wrong_chain")} == 1) or 0 * ${NODES}`;

/** The answer to "are we fine", at a glance. */
export const overviewRow: Row = {
  title: "Overview",
  panels: [
    {
      title: "Availability",
      description: "Share of calls without an error of forebay, of all nodes, or at the deadline. Then see Requests.",
      unit: "percentunit",
      levels: low(0.99, 0.999),
      queries: [{ expr: AVAILABILITY, legend: "{{chain}}" }],
    },
    {
      title: "Latency, 99th percentile",
      description: "Duration of a call over all methods. Wide log queries are included.",
      unit: "s",
      levels: ok(1, 3),
      queries: [named("{{chain}}", quantile(0.99, "request_seconds", CHAIN, "chain"))],
    },
    {
      title: "Hit ratio",
      description: "Share of cache look-ups without a request to a node.",
      unit: "percentunit",
      levels: neutral,
      queries: [{ expr: HIT_RATIO, legend: "{{chain}}" }],
    },
    {
      title: "Saved and spent",
      description:
        "Calls a second that needed no node, their price in provider units (docs/usage.md), and the price of calls to nodes.",
      unit: "suffix:/s",
      levels: neutral,
      queries: [
        { expr: byChain("saved_calls_total"), legend: "{{chain}} calls saved" },
        { expr: byChain("saved_units_total"), legend: "{{chain}} units saved" },
        { expr: byChain("upstream_units_total"), legend: "{{chain}} units spent" },
      ],
    },
    {
      title: "Units today",
      description:
        "Price of all calls to nodes since midnight in provider units, from scraped counters. GET /usage?days=1 on the ops port has the sum of the UTC day.",
      unit: "short",
      today: true,
      levels: neutral,
      queries: [totals("upstream_units_total")],
    },
    {
      title: "Saved today",
      description: "Price of the calls of clients since midnight that needed no call to a node, in provider units.",
      unit: "short",
      today: true,
      levels: neutral,
      queries: [totals("saved_units_total")],
    },
    {
      title: "Head lag",
      description: "Seconds since the timestamp of the served head, of the replica that is furthest behind.",
      unit: "s",
      levels: ok(30, 120),
      queries: [value("max", "head_age_seconds", CHAIN, "chain")],
    },
    {
      title: "Feed",
      description: "Time since the last valid message of the sequencer's feed. No data: no feed is configured.",
      unit: "s",
      levels: ok(4, 10),
      queries: [value("max", "feed_age_seconds", CHAIN, "chain")],
    },
    {
      title: "Nodes up",
      description: "Nodes that every replica uses, of all configured ones. Then see Nodes without requests.",
      unit: "none",
      levels: low(1, 1),
      queries: [
        { expr: NODES_UP, legend: "{{chain}} up" },
        { expr: NODES, legend: "{{chain}} of" },
      ],
    },
    {
      title: "Rate limits",
      description: "HTTP 429 a second: responses to clients over their limit, and responses of nodes to forebay.",
      unit: "reqps",
      levels: ok(0.1, 10),
      queries: [
        { expr: `sum(${rate("http_responses_total", `status="429",${INSTANCE}`)})`, legend: "to clients" },
        {
          expr: `sum by (chain) (${rate("upstream_requests_total", `outcome="rateLimited",${NODE}`)})`,
          legend: "{{chain}} from nodes",
        },
      ],
    },
  ],
};
