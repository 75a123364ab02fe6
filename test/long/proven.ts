import type { Heads } from "../../src/core/heads.ts";
import type { Hash } from "../../src/ethereum/hex.ts";
import type { ProofResponse } from "../support/builders/provenState.ts";
import { createRandom, pick } from "../support/builders/randomValues.ts";
import { metric } from "../support/clients/rpc.ts";
import type { Lie } from "../support/fakes/lyingNode.ts";
import { createService, type Service } from "../support/servers/service.ts";
import { withLifespan } from "../support/servers/withLifespan.ts";
import { createStateReads } from "../world/judge/stateReads.ts";
import { startWorldNode, type WorldNode } from "../world/nodes/worldNode.ts";
import { SLOTS, STAND_IN_STORAGES, type TracedRefunds } from "../world/state/randomStateBlocks.ts";
import type { StandInChain } from "../world/state/standInChain.ts";
import { createStateChain, drive } from "../world/state/stateChain.ts";
import { wordOf } from "../world/state/stateKeys.ts";
import type { LongOptions } from "./support/longOptions.ts";
import { LIE_CLASSES, type LyingKind, ProvenLiar, WITNESS_LIE_CLASSES } from "./support/provenLies.ts";

const WHOLE_SECONDS = 240;
/** A wrong proof suspends its node for 30 s. A new service, with its nodes unblamed, begins after this number of comparisons. */
const ROUND_COMPARISONS = 500;
/** With a planted fault: values are carried over more blocks. */
const PLANTED_ROUND_COMPARISONS = 2_400;

const times = (count: number, kind: LyingKind): readonly LyingKind[] => Array.from({ length: count }, () => kind);

interface Variant {
  readonly name: string;
  readonly fork: "amsterdam" | "prague";
  /** Endpoints of the origin that lies, and what each lies about. One goes on after another was suspended. */
  readonly lying: readonly LyingKind[];
  /** Each is told in the run. */
  readonly classes: readonly string[];
  /** Blocks have no access lists: witnesses prove what traces show. */
  readonly hasWitnesses?: true;
  readonly prove: "auto" | true;
  /** The share of its responses in which the origin lies. After three blocks without a proof, no witness is asked for a time. */
  readonly lyingShare: number;
  /** Blocks give back gas, which traces do not show. */
  readonly refunds?: TracedRefunds;
}

/** `VARIANT=text` selects variants by a part of their name, `SEED=n` other blocks and reads. */
const only = process.env.VARIANT;
const VARIANTS: readonly Variant[] = [
  {
    ...{ name: "lists", fork: "amsterdam", classes: LIE_CLASSES, prove: "auto" },
    lyingShare: 0.5,
    lying: ["headers", "order", ...times(3, "lists"), ...times(4, "slots"), ...times(24, "proofs")],
  },
  {
    ...{ name: "witnesses", fork: "prague", classes: WITNESS_LIE_CLASSES, hasWitnesses: true, prove: true },
    lyingShare: 0.25,
    lying: times(4, "witnesses"),
  },
  {
    ...{ name: "refunds", fork: "prague", classes: WITNESS_LIE_CLASSES, hasWitnesses: true, prove: true },
    lyingShare: 0.25,
    lying: times(4, "witnesses"),
    refunds: "unsettled",
  },
];
/** The share of blocks whose list no node has right, so that a trace carries the values over them, and not the proofs. */
const UNLISTED_SHARE = 0.1;
/** Provider units: the reads of the run pay for these early in a round. */
const CHEAP = {
  ...{ eth_getBlockAccessList: 1, debug_traceBlockByHash: 1 },
  ...{ debug_executionWitness: 1, eth_getProof: 1 },
};
const CLIENTS = 4;
const PROOF_SHARE = 0.15;
const CALL_SHARE = 0.4;
/** The share of requests that require a proven answer. Without lists, only they read first sights by proof. */
const REQUIRING_SHARE = 0.3;
const BLOCK_MS = 70;
const FIRST_BLOCKS = 80;
const MAX_DEPTH = 40;
const KEPT_DIFFERENCES = 20;
/** The share of the compared answers that must be proven, and the share that must be proven calls. No time decides. */
const MIN_PROVEN_SHARE = 0.1;
const MIN_CALL_SHARE = 0.0001;
/** Proven blocks to one comparison, where witnesses prove them. */
const MIN_WITNESSED_SHARE = 0.001;
/** In the whole run, this number of answers is compared, and each class of lies is told this often. Shorter and slower runs do less. */
const WHOLE_COMPARISONS = 100_000;
const WHOLE_TOLD = 100;
/** Chance decides more in a shorter run: it tells each class at least this part as often. */
const SHORT_MARGIN = 0.5;
const seed = Number(process.env.SEED ?? 1);
const isPlanted = process.env.PLANTED !== undefined;

/** Returns the two slots that the data names. It replaces the code of a token. */
const SLOT_READER = "0x5f35545f526020355460205260405ff3";

interface Read {
  readonly method: string;
  /** Without the block. */
  readonly params: readonly unknown[];
  /** Parameters after the block. */
  readonly rest: readonly unknown[];
  expected(hash: Hash): unknown;
  /** Returns what is compared of a result. Default: all of it. */
  readonly compared?: (result: unknown) => unknown;
}

interface Tally {
  comparisons: number;
  proven: number;
  provenCalls: number;
  /** Blocks whose traced writes a witness proved, and those where it did not. */
  readonly witnessed: { proven: number; unproven: number };
  errors: number;
  reorganisations: number;
  readonly differences: object[];
}

interface World {
  readonly variant: Variant;
  readonly chain: StandInChain;
  readonly liar: ProvenLiar;
  readonly random: () => number;
  readonly tally: Tally;
}

/** Returns the values of a proof. Nodes may order its slots as they like. */
const valuesOfProof = (result: unknown): string => {
  const { balance, nonce, codeHash, storageHash, storageProof } = result as ProofResponse;
  const slots = storageProof.map(({ key, value }) => `${BigInt(key)}: ${BigInt(value)}`).sort();
  return [BigInt(balance), BigInt(nonce), codeHash, storageHash, ...slots].join(" ");
};

/** A proof of two slots of a token. */
const drawProof = ({ chain, random }: World): Read => {
  const address = pick(random, STAND_IN_STORAGES.slice(0, 3));
  const first = Math.floor(random() * SLOTS);
  const slots = [first, (first + 1) % SLOTS].map((slot) => wordOf(BigInt(slot)));
  return {
    ...{ method: "eth_getProof", params: [address, slots], rest: [], compared: valuesOfProof },
    expected: (hash) => valuesOfProof(chain.block(hash)?.proofOf?.(address, slots)),
  };
};

/** A read of one value, a proof, or a call that reads two slots of a token. */
const drawRead = (world: World): Read => {
  const { chain, random, variant } = world;
  const chance = random();
  if (chance < PROOF_SHARE && variant.prove === "auto") {
    return drawProof(world);
  }
  if (chance < CALL_SHARE) {
    const to = pick(random, STAND_IN_STORAGES.slice(0, 3));
    const first = Math.floor(random() * SLOTS);
    const slots = [first, (first + 1) % SLOTS].map((slot) => wordOf(BigInt(slot)));
    const join = (words: readonly Hash[]): string => `0x${words.map((word) => word.slice(2)).join("")}`;
    return {
      method: "eth_call",
      params: [{ to, gas: "0x30000", data: join(slots) }],
      rest: [{ [to]: { code: SLOT_READER } }],
      expected: (hash) => join(slots.map((slot) => chain.stateAt(hash).slot(to, slot))),
    };
  }
  const kind = createStateReads(chain);
  const read = kind.draw(random, chain.height);
  const { method, params } = kind.callAt(read, "");
  return { method, params: params.slice(0, -1), rest: [], expected: (hash) => kind.expected(read, hash) };
};

/** Sends reads until the round is over, and compares each that is labelled proven with the chain's record of its block. */
const compare = async (world: World, service: Service, isOver: () => boolean): Promise<void> => {
  const { chain, random, tally } = world;
  const heads = service.chains[0]?.upstreams.heads;
  const first = heads?.current();
  const views: Heads[] = first === undefined ? [] : [first];
  heads?.subscribe((change) => views.push(change.heads));
  while (!isOver()) {
    const read = drawRead(world);
    const hash = random() < 0.3 ? chain.at(chain.height - Math.floor(random() * MAX_DEPTH))?.hash : undefined;
    const from = Math.max(0, views.length - 1);
    const response = await fetch(service.url, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        ...(random() < REQUIRING_SHARE && { "x-forebay-require": "proven" }),
      },
      body: JSON.stringify({
        ...{ jsonrpc: "2.0", id: 1, method: read.method },
        params: [...read.params, hash === undefined ? "latest" : { blockHash: hash }, ...read.rest],
      }),
    });
    const { result, error } = (await response.json()) as { readonly result?: unknown; readonly error?: unknown };
    tally.comparisons++;
    tally.errors += error === undefined ? 0 : 1;
    const number = /^proven; block=(\d+)$/.exec(response.headers.get("x-forebay-proof") ?? "")?.[1];
    if (number === undefined) {
      continue;
    }
    tally.proven++;
    tally.provenCalls += read.method === "eth_call" ? 1 : 0;
    const served = views.slice(from).flatMap((view) => view.at(BigInt(number))?.hash ?? []);
    const hashes = hash === undefined ? [...new Set(served)] : [hash];
    const expected = hashes.map((each) => read.expected(each));
    const compared = read.compared?.(result) ?? result;
    if (!expected.includes(compared) && tally.differences.length < KEPT_DIFFERENCES) {
      tally.differences.push({ method: read.method, params: read.params, number, hashes, result: compared, expected });
    }
  }
};

/** Starts a service in front of two honest origins and one that lies, and compares its answers for a time. */
const runRound = async (world: World, nodes: readonly WorldNode[], isRunOver: () => boolean): Promise<void> => {
  const { fork, lying, prove } = world.variant;
  const configured = nodes.map(({ url, wsUrl }, index) => ({
    ...{ name: `node${index}`, url, priority: index < lying.length ? 0 : 1 },
    ...(lying[index] === "headers" ? {} : { wsUrl }),
    provider: index < lying.length ? "liar" : `operator${index}`,
  }));
  // The first endpoint is asked until it is suspended: in each round another one.
  const first = Math.floor(world.random() * lying.length);
  const service = await createService({
    nodes: [...configured.slice(first), ...configured.slice(0, first)],
    ...{ blockTimeMs: BLOCK_MS, forks: fork },
    state: { prove, units: CHEAP },
  });
  const { tally } = world;
  const lastComparison = tally.comparisons + (isPlanted ? PLANTED_ROUND_COMPARISONS : ROUND_COMPARISONS);
  const isOver = () => isRunOver() || tally.comparisons >= lastComparison;
  await Promise.all(Array.from({ length: CLIENTS }, () => compare(world, service, isOver)));
  const proofs = (...labels: readonly string[]) => metric(service.opsUrl, "forebay_state_proofs_total", ...labels);
  const proven = await proofs('result="proven"');
  tally.witnessed.proven += proven;
  tally.witnessed.unproven += (await proofs()) - proven;
  await service.close();
};

const run = (variant: Variant, seconds: number, steps: number | undefined) =>
  withLifespan(async (t) => {
    const random = createRandom(seed);
    const { fork, refunds, hasWitnesses } = variant;
    const state = await createStateChain({ fork, seed, length: FIRST_BLOCKS, refunds, hasRoots: true });
    const { chain } = state;
    const tally: Tally = {
      comparisons: 0,
      proven: 0,
      provenCalls: 0,
      witnessed: { proven: 0, unproven: 0 },
      errors: 0,
      reorganisations: 0,
      differences: [],
    };
    const liar = new ProvenLiar(chain, random, variant.lyingShare);
    const world = { variant, chain, liar, random, tally };
    const isUnlisted = (number: number): boolean => createRandom(seed + number)() < UNLISTED_SHARE;
    const unlisted: Lie = {
      ...{ name: "unlisted", methods: ["eth_getBlockAccessList"] },
      result: (list, { params: [at] }) => (isUnlisted(chain.block(at)?.number ?? Number(at)) ? [] : list),
    };
    const start = (lies: readonly Lie[]) =>
      startWorldNode(t, chain, { hasWitnesses, traces: "geth", lies: [unlisted, ...lies] });
    const nodes = await Promise.all([
      ...variant.lying.map((kind) => start(liar.liesAbout(kind))),
      ...[1, 2].map(() => start([])),
    ]);
    const ending = new AbortController();
    const driving = drive(state, { seed, blockMs: BLOCK_MS }, ending.signal);
    const endMs = performance.now() + seconds * 1_000;
    const isOver = (): boolean =>
      (steps === undefined ? performance.now() >= endMs : tally.proven >= steps) ||
      (isPlanted && tally.differences.length > 0);
    let rounds = 0;
    while (!isOver()) {
      await runRound(world, nodes, isOver);
      rounds++;
    }
    ending.abort();
    tally.reorganisations = await driving;
    const told = Object.fromEntries(variant.classes.map((name) => [name, liar.told.get(name) ?? 0]));
    return { ...tally, rounds, told, leastTold: Math.min(...Object.values(told)) };
  });

const isEnough = (
  { comparisons, proven, provenCalls, witnessed, leastTold }: Awaited<ReturnType<typeof run>>,
  { hasWitnesses }: Variant,
  seconds: number,
) => {
  const share = Math.min(seconds / WHOLE_SECONDS, comparisons / WHOLE_COMPARISONS);
  return (
    comparisons > 0 &&
    proven >= MIN_PROVEN_SHARE * comparisons &&
    provenCalls >= Math.floor(MIN_CALL_SHARE * comparisons) &&
    (hasWitnesses !== true || witnessed.proven >= Math.floor(MIN_WITNESSED_SHARE * comparisons)) &&
    leastTold >= Math.floor(share * WHOLE_TOLD * (share < 1 ? SHORT_MARGIN : 1))
  );
};

export const takesSteps = true;

/**
 * Compares each answer that is labelled proven with the chain's record, while blocks are reorganised. One of three origins lies, in
 * each class of lies, in half of its responses; about witnesses in a quarter. A step is a proven answer.
 */
export const long = async ({ seconds, steps }: LongOptions) => {
  const chosen = VARIANTS.filter(({ name }) => only === undefined || name.includes(only));
  const each = (seconds ?? WHOLE_SECONDS * chosen.length) / chosen.length;
  const variants: Record<string, unknown> = {};
  let passed = true;
  for (const variant of chosen) {
    const result = await run(variant, each, steps);
    variants[variant.name] = result;
    passed &&= result.differences.length === 0 && (steps !== undefined || isEnough(result, variant, each));
  }
  return { claim: "no answer labelled proven differs from the chain's record", variants, passed };
};
