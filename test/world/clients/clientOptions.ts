import type { Dispatcher } from "undici";
import type { TruthChain } from "../chain/truthChain.ts";
import type { Recorder } from "../judge/recorder.ts";
import type { Instance } from "../proxies/proxy.ts";

/** A chain behind the proxy. Requests go to its instances in turn. */
export interface Target {
  readonly chain: TruthChain;
  readonly instances: () => readonly Instance[];
}

export interface Load {
  /** Connections with subscriptions. */
  readonly sockets: number;
  /** Clients send so many times faster. */
  readonly pace: number;
  /** Limits of the life of a subscription or filter, in milliseconds. */
  readonly life: { readonly minMs: number; readonly maxMs: number };
}

/** Draws the life of a subscription or filter. */
export const drawLife = ({ life }: Load, random: (below: number) => number): number =>
  life.minMs + random(life.maxMs - life.minMs + 1);

export interface Clients {
  /** The first chain gets most requests, and all subscriptions and filters. */
  readonly targets: readonly [Target, ...Target[]];
  readonly recorder: Recorder;
  readonly seed: number;
  readonly load: Load;
}

/** The options of one client. */
export interface ClientOptions extends Clients {
  readonly dispatcher: Dispatcher;
  readonly signal: AbortSignal;
  readonly random: (below: number) => number;
}
