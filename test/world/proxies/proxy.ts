import type { Lifespan } from "../../support/servers/redis.ts";

/** An ability that a scenario needs. Without it, the scenario is "not offered". */
export type Offer = "restart" | "replicas" | "feed" | "clock" | "redis";

/** The options with which a proxy is started. */
export interface ProxySetup {
  readonly chainId: number;
  readonly nodeUrls: readonly string[];
  /** The URLs of the feeds, for a proxy that offers feeds. */
  readonly feedUrls: readonly string[];
  readonly replicas: number;
  /** A second chain, for a proxy of several chains. */
  readonly other?: { readonly chainId: number; readonly nodeUrl: string } | undefined;
  /** Called if a process ends that nobody killed. */
  readonly onUnexpectedEnd?: (text: string) => void;
}

/** A running process of a proxy. */
export interface Instance {
  readonly label: string;
  readonly url: string;
}

/** A running proxy. It ends with its lifespan. */
export interface RunningProxy {
  /** Returns its instances now. Requests of the second chain go to other URLs. */
  readonly instances: (isOther?: boolean) => readonly Instance[];
  /** Kills the instance with this index, and starts it again. */
  readonly restart: (index: number) => Promise<void>;
  /** Moves the clock of one instance, as a wrong time server does. */
  readonly jumpClock?: (index: number) => void;
  /** Stops the Redis of the instances, or lets it continue. */
  readonly pauseRedis?: (isPaused: boolean) => void;
}

/** A proxy under test. */
export interface TestedProxy {
  readonly name: string;
  readonly version: string;
  readonly offers: ReadonlySet<Offer>;
  /** The user starts it, once. All scenarios are then on one chain. */
  readonly isForeign?: true;
  start(t: Lifespan, setup: ProxySetup): Promise<RunningProxy>;
  /** The configuration, as a user would write it. */
  template(setup: ProxySetup): string;
}
