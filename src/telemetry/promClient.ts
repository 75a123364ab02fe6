import { createRequire } from "node:module";
import type * as PromClient from "prom-client";

const require = createRequire(import.meta.url);

/** The index of prom-client also loads node:cluster, node:child_process and a push client: 10 MB and 30 ms of each start. */
export const Registry: typeof PromClient.Registry = require("prom-client/lib/registry.js");
export const Counter: typeof PromClient.Counter = require("prom-client/lib/counter.js");
export const Gauge: typeof PromClient.Gauge = require("prom-client/lib/gauge.js");
export const Histogram: typeof PromClient.Histogram = require("prom-client/lib/histogram.js");

export type Registry = PromClient.Registry;
export type Counter = PromClient.Counter;
export type Gauge = PromClient.Gauge;
export type Histogram = PromClient.Histogram;
