import type { ReadinessReport } from "./opsServer.ts";

interface WatchedNode {
  readonly name: string;
  readonly available: boolean;
  readonly identified: boolean;
  readonly fault?: { readonly kind: string; readonly text: string } | undefined;
  /** Why the node gets no requests; undefined for a node in use. */
  readonly unusedReason?: string | undefined;
}

/** The parts of a chain that decide its readiness. */
export interface WatchedChain {
  readonly name: string;
  readonly upstreams: {
    readonly nodes: readonly WatchedNode[];
    readonly heads: { current(): unknown };
  };
  /** Why nodes answer calls that forebay could answer. */
  readonly forwarded: { readonly list: readonly object[] };
}

export interface ReadinessOptions<C extends WatchedChain> {
  /** The chains that must be known: all, any, or those of these names. */
  readonly rule: "all" | "any" | readonly string[];
  chains(): readonly C[];
  /** The chain has its genesis and a first head. */
  isKnown(chain: C): boolean;
  isDraining(): boolean;
  readonly now?: () => number;
}

export interface Readiness<C> {
  /** Reports for the process, or for the named chain. */
  report(chain: string | undefined): ReadinessReport;
  /** Whether the chain is known and one of its nodes can take requests. */
  isServing(chain: C): boolean;
}

/** With rule `any`: after this time one known chain is enough. */
const GRACE_MS = 10_000;

/** Returns why no node of a chain is used yet. A wrong chain is more important than a node that cannot be reached. */
const reasonOfFaults = ({ upstreams }: WatchedChain): string => {
  const kinds = new Set(upstreams.nodes.map(({ fault }) => fault?.kind));
  if (kinds.has("wrongChain")) {
    return "wrong chain id or genesis";
  }
  if (kinds.has("noGenesis")) {
    return "genesis missing";
  }
  return "no node reachable";
};

const reasonOf = (chain: WatchedChain, isKnown: boolean): string => {
  const { nodes, heads } = chain.upstreams;
  if (isKnown) {
    return "no node can be asked now";
  }
  if (!nodes.some(({ identified }) => identified)) {
    return reasonOfFaults(chain);
  }
  return heads.current() === undefined ? "no head yet" : "rules not read yet";
};

/** Returns why nodes are not used, by name. */
const faultsOf = ({ upstreams }: WatchedChain): Readonly<Record<string, string>> =>
  Object.fromEntries(
    upstreams.nodes.flatMap(({ name, identified, fault, unusedReason }) => {
      const reason = unusedReason ?? (identified ? undefined : (fault?.text ?? "no response yet"));
      return reason === undefined ? [] : [[name, reason]];
    }),
  );

/** Creates the readiness of the process. A process that was ready once stays ready until it drains. */
export const createReadiness = <C extends WatchedChain>(options: ReadinessOptions<C>): Readiness<C> => {
  const { rule, isKnown, now = () => performance.now() } = options;
  const startedMs = now();
  let wasReady = false;

  const isServing = (chain: C): boolean => isKnown(chain) && chain.upstreams.nodes.some(({ available }) => available);

  const decide = (): boolean => {
    const chains = options.chains();
    if (typeof rule !== "string") {
      return chains.filter(({ name }) => rule.includes(name)).every(isKnown);
    }
    if (rule === "any" && now() - startedMs >= GRACE_MS) {
      return chains.some(isKnown);
    }
    return chains.every(isKnown);
  };
  const isReady = (): boolean => {
    wasReady ||= decide();
    return wasReady;
  };

  const describe = (chain: C) => {
    const ready = isKnown(chain);
    const serving = isServing(chain);
    const faults = faultsOf(chain);
    return {
      name: chain.name,
      ready,
      serving,
      ...(!serving && { reason: reasonOf(chain, ready) }),
      ...((!ready || Object.keys(faults).length > 0) && { nodes: faults }),
      ...(chain.forwarded.list.length > 0 && { forwarded: chain.forwarded.list }),
    };
  };

  const report = (ready: boolean, chains: readonly C[]): ReadinessReport => {
    const draining = options.isDraining();
    const isUp = ready && !draining;
    return { status: isUp ? 200 : 503, body: { ready: isUp, draining, chains: chains.map(describe) } };
  };

  return {
    isServing,
    report: (name) => {
      const chains = options.chains();
      if (name === undefined) {
        return report(isReady(), chains);
      }
      const chain = chains.find((each) => each.name === name);
      if (chain !== undefined) {
        return report(isKnown(chain), [chain]);
      }
      return { status: 404, body: { error: "no such chain", chains: chains.map((each) => each.name) } };
    },
  };
};
