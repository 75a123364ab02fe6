import type { ReadinessReport } from "./opsServer.ts";

interface WatchedNode {
  readonly name: string;
  readonly available: boolean;
  readonly identity: { readonly isIdentified: boolean; readonly fault: { readonly kind: string } | undefined };
  /** `because`: why the node is not in use; undefined for a node in use. */
  readonly state: { readonly because: string | undefined };
}

/** The parts of a chain that decide its readiness. */
export interface WatchedChain {
  readonly name: string;
  /** It has its genesis and a first head. */
  readonly isKnown: boolean;
  /** What was known of its state before a restart is being read. */
  readonly isRestoring: boolean;
  readonly upstreams: {
    readonly nodes: readonly WatchedNode[];
    readonly heads: { current(): unknown };
  };
  /** Why nodes answer calls that forebay could answer. */
  readonly forwarded: { readonly list: readonly object[] };
}

export interface ReadinessOptions {
  /** The chains that must be known: all, any, or those of these names. */
  readonly rule: "all" | "any" | readonly string[];
  chains(): readonly WatchedChain[];
  isDraining(): boolean;
  readonly nowMs?: () => number;
}

/** With rule `any`: after this time one known chain is enough. */
const GRACE_MS = 10_000;
/** Requests that arrive before known state is restored go to nodes. A process waits for it up to this time after its start. */
const RESTORE_MS = 10_000;

/** Returns why no node of a chain is used yet. A wrong chain is more important than a node that cannot be reached. */
const reasonOfFaults = ({ upstreams }: WatchedChain): string => {
  const kinds = new Set(upstreams.nodes.map(({ identity }) => identity.fault?.kind));
  if (kinds.has("wrongChain")) {
    return "wrong chain id or genesis";
  }
  if (kinds.has("noGenesis")) {
    return "genesis missing";
  }
  return "no node reachable";
};

const reasonOf = (chain: WatchedChain): string => {
  const { nodes, heads } = chain.upstreams;
  if (chain.isKnown) {
    return "no node can be asked now";
  }
  if (!nodes.some(({ identity }) => identity.isIdentified)) {
    return reasonOfFaults(chain);
  }
  return heads.current() === undefined ? "no head yet" : "rules not read yet";
};

/** Returns why nodes are not used, by name. */
const faultsOf = ({ upstreams }: WatchedChain): Readonly<Record<string, string>> =>
  Object.fromEntries(
    upstreams.nodes.flatMap(({ name, state: { because } }) => (because === undefined ? [] : [[name, because]])),
  );

/** The readiness of the process. A process that was ready once stays ready until it drains. */
export class Readiness {
  readonly #options: ReadinessOptions;
  readonly #nowMs: () => number;
  readonly #startedMs: number;
  #wasReady = false;

  constructor(options: ReadinessOptions) {
    this.#options = options;
    this.#nowMs = options.nowMs ?? (() => performance.now());
    this.#startedMs = this.#nowMs();
  }

  /** Whether the chain is known and one of its nodes can take requests. */
  isServing(chain: WatchedChain): boolean {
    return chain.isKnown && chain.upstreams.nodes.some(({ available }) => available);
  }

  /** Reports for the process, or for the named chain. */
  report(name: string | undefined): ReadinessReport {
    const chains = this.#options.chains();
    if (name === undefined) {
      this.#wasReady ||= this.#decide(chains);
      return this.#report(this.#wasReady, chains);
    }
    const chain = chains.find((each) => each.name === name);
    if (chain !== undefined) {
      return this.#report(chain.isKnown, [chain]);
    }
    return { status: 404, body: { error: "no such chain", chains: chains.map((each) => each.name) } };
  }

  #isRestoring(chain: WatchedChain): boolean {
    return !this.#wasReady && this.#nowMs() - this.#startedMs < RESTORE_MS && chain.isRestoring;
  }

  #decide(chains: readonly WatchedChain[]): boolean {
    const { rule } = this.#options;
    const isKnown = (chain: WatchedChain): boolean => chain.isKnown;
    if (chains.some((chain) => this.#isRestoring(chain))) {
      return false;
    }
    if (typeof rule !== "string") {
      return chains.filter(({ name }) => rule.includes(name)).every(isKnown);
    }
    if (rule === "any" && this.#nowMs() - this.#startedMs >= GRACE_MS) {
      return chains.some(isKnown);
    }
    return chains.every(isKnown);
  }

  #describe(chain: WatchedChain) {
    const ready = chain.isKnown;
    const serving = this.isServing(chain);
    const faults = faultsOf(chain);
    return {
      name: chain.name,
      ready,
      serving,
      ...(!serving && { reason: reasonOf(chain) }),
      ...(this.#isRestoring(chain) && { reason: "known state is being restored" }),
      ...((!ready || Object.keys(faults).length > 0) && { nodes: faults }),
      ...(chain.forwarded.list.length > 0 && { forwarded: chain.forwarded.list }),
    };
  }

  #report(ready: boolean, chains: readonly WatchedChain[]): ReadinessReport {
    const draining = this.#options.isDraining();
    const isUp = ready && !draining;
    return {
      status: isUp ? 200 : 503,
      body: { ready: isUp, draining, chains: chains.map((chain) => this.#describe(chain)) },
    };
  }
}
