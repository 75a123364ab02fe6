import type { Lifespan } from "../../support/servers/redis.ts";

/** An ability that a scenario needs. Without it, the scenario is "not offered". */
export type Offer = "restart" | "replicas" | "feed";

/** The options with which a proxy is started. */
export interface ProxySetup {
  readonly chainId: number;
  readonly nodeUrls: readonly string[];
  /** The URLs of the feeds, for a proxy that offers feeds. */
  readonly feedUrls: readonly string[];
  readonly replicas: number;
}

/** A running proxy. It ends with its lifespan. */
export interface RunningProxy {
  /** The URLs of its instances now. */
  readonly urls: () => readonly string[];
  /** Kills the first instance, and starts it again. */
  readonly restart: () => Promise<void>;
}

/** A proxy under test. */
export interface TruthProxy {
  readonly name: string;
  readonly version: string;
  readonly offers: ReadonlySet<Offer>;
  /** The user starts it, once. All scenarios are then on one chain. */
  readonly isForeign?: true;
  start(t: Lifespan, setup: ProxySetup): Promise<RunningProxy>;
  /** The configuration, as a user would write it. */
  template(setup: ProxySetup): string;
}
