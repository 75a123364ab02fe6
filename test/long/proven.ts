import { setTimeout as sleep } from "node:timers/promises";
import type { Heads } from "../../src/core/heads.ts";
import type { Hash } from "../../src/ethereum/hex.ts";
import { createRandom, pick } from "../support/builders/randomValues.ts";
import { createService, type Service } from "../support/servers/service.ts";
import { RandomStateBlocks, SLOTS, STAND_IN_STORAGES } from "../support/standIn/randomStateBlocks.ts";
import { StandInCalls } from "../support/standIn/standInCalls.ts";
import { StandInChain } from "../support/standIn/standInChain.ts";
import { StandInNode } from "../support/standIn/standInNode.ts";
import { wordOf } from "../support/standIn/stateKeys.ts";
import { createStateReads } from "../support/standIn/stateReads.ts";
import type { LongOptions } from "./support/memory.ts";
import { LIE_CLASSES, type LyingKind, ProvenLiar } from "./support/provenLies.ts";
import { runWithFault } from "./support/runWithFault.ts";

const WHOLE_SECONDS = 240;
const FAULT_SECONDS = 120;
/** A wrong proof suspends its node for 30 s. A new service, with its nodes unblamed, begins after this time. */
const ROUND_MS = 6_000;
/** Endpoints of the origin that lies, and what each lies about. One goes on after another was suspended. */
const LYING_NODES: readonly LyingKind[] = [
  ...(["headers", "order", "lists", "lists", "lists"] as const),
  ...Array.from({ length: 10 }, (): LyingKind => "proofs"),
];
const LYING_SHARE = 0.5;
/** The share of blocks whose list no node has right, so that a trace carries the values over them, and not the proofs. */
const UNLISTED_SHARE = 0.1;
const CLIENTS = 4;
const BLOCK_MS = 150;
const MAX_REORG = 64;
const FIRST_BLOCKS = 80;
const MAX_DEPTH = 40;
const KEPT_DIFFERENCES = 20;
/** The share of the compared answers that must be proven, and the share that must be proven calls. No time decides. */
const MIN_PROVEN_SHARE = 0.1;
const MIN_CALL_SHARE = 0.0001;
/** Each class of lies must be told once in this number of comparisons. */
const COMPARISONS_PER_LIE = 20_000;
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
}

interface Tally {
  comparisons: number;
  proven: number;
  provenCalls: number;
  errors: number;
  reorganisations: number;
  readonly differences: object[];
}

interface World {
  readonly chain: StandInChain;
  readonly liar: ProvenLiar;
  readonly random: () => number;
  readonly tally: Tally;
}

/** Mines and reorganises until the signal aborts. */
const drive = async ({ chain, random, tally }: World, blocks: RandomStateBlocks, signal: AbortSignal) => {
  while (!signal.aborted) {
    const chance = random();
    let count = 1;
    if (chance < 0.1) {
      const depth = 1 + Math.floor(random() * (chance < 0.02 ? MAX_REORG : 4));
      chain.rewind(depth);
      count = depth + 1;
      tally.reorganisations++;
    }
    for (let index = 0; index < count; index++) {
      await blocks.mine();
    }
    await sleep(random() * 2 * BLOCK_MS);
  }
};

/** A read of one value, or a call that reads two slots of a token. */
const drawRead = ({ chain, random }: World): Read => {
  if (random() < 0.3) {
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

/** Sends reads, and compares each that is labelled proven with the chain's record of its block. */
const compare = async (world: World, service: Service, signal: AbortSignal): Promise<void> => {
  const { chain, random, tally } = world;
  const heads = service.chains[0]?.upstreams.heads;
  const first = heads?.current();
  const views: Heads[] = first === undefined ? [] : [first];
  heads?.subscribe((change) => views.push(change.heads));
  while (!signal.aborted) {
    const read = drawRead(world);
    const hash = random() < 0.3 ? chain.at(chain.height - Math.floor(random() * MAX_DEPTH))?.hash : undefined;
    const from = Math.max(0, views.length - 1);
    const response = await fetch(service.url, {
      method: "POST",
      headers: { "content-type": "application/json" },
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
    if (!expected.includes(result) && tally.differences.length < KEPT_DIFFERENCES) {
      tally.differences.push({ method: read.method, params: read.params, number, hashes, result, expected });
    }
  }
};

/** Starts a service in front of two honest origins and one that lies, and compares its answers for a time. */
const runRound = async (world: World, nodes: readonly StandInNode[], forMs: number): Promise<void> => {
  const service = await createService({
    nodes: nodes.map(({ url }, index) => ({
      ...{ name: `node${index}`, url, priority: index < LYING_NODES.length ? 0 : 1 },
      provider: index < LYING_NODES.length ? "liar" : `operator${index}`,
    })),
    ...{ blockTimeMs: BLOCK_MS, forks: "amsterdam" },
    state: { probation: { blocks: 0, values: 0 } },
  });
  const ending = new AbortController();
  const clients = Array.from({ length: CLIENTS }, () => compare(world, service, ending.signal));
  const endMs = performance.now() + forMs;
  while (performance.now() < endMs && !(isPlanted && world.tally.differences.length > 0)) {
    await sleep(100);
  }
  ending.abort();
  await Promise.all(clients);
  await service.close();
};

const run = async (seconds: number) => {
  const random = createRandom(seed);
  const chain = new StandInChain("amsterdam", true);
  const blocks = new RandomStateBlocks(chain, seed);
  const tally: Tally = { comparisons: 0, proven: 0, provenCalls: 0, errors: 0, reorganisations: 0, differences: [] };
  const liar = new ProvenLiar(chain, random, LYING_SHARE);
  const world = { chain, liar, random, tally };
  blocks.genesis();
  for (let index = 0; index < FIRST_BLOCKS; index++) {
    await blocks.mine();
  }
  const execution = await StandInCalls.create(chain);
  const isUnlisted = (number: number): boolean => createRandom(seed + number)() < UNLISTED_SHARE;
  const listOf = (list: unknown, [at]: readonly unknown[]): unknown =>
    isUnlisted(chain.block(at)?.number ?? Number(at)) ? [] : list;
  const shared = { chain, execution, hasAccessLists: true, hasProofs: true, traces: "geth" } as const;
  const nodes = await Promise.all([
    ...LYING_NODES.map((kind) => {
      const lies = liar.liesAbout(kind);
      const lieAboutList = lies.eth_getBlockAccessList ?? ((list) => list);
      const eth_getBlockAccessList: typeof lieAboutList = (list, params) => lieAboutList(listOf(list, params), params);
      return StandInNode.start({ ...shared, lies: { ...lies, eth_getBlockAccessList } });
    }),
    ...[1, 2].map(() => StandInNode.start({ ...shared, lies: { eth_getBlockAccessList: listOf } })),
  ]);
  const ending = new AbortController();
  const driving = drive(world, blocks, ending.signal);
  const endMs = performance.now() + seconds * 1_000;
  let rounds = 0;
  while (performance.now() < endMs && !(isPlanted && tally.differences.length > 0)) {
    await runRound(world, nodes, Math.min(ROUND_MS, endMs - performance.now()));
    rounds++;
  }
  ending.abort();
  await driving;
  await Promise.all(nodes.map((node) => node.close()));
  const told = Object.fromEntries(LIE_CLASSES.map((name) => [name, liar.told.get(name) ?? 0]));
  return { ...tally, rounds, told, leastTold: Math.min(...Object.values(told)) };
};

/**
 * Compares each answer that is labelled proven with the chain's record, while blocks are reorganised. One of three origins lies in half
 * of its responses, in each class of lies. `FAULT=name` plants a fault, which the run must find.
 */
export const long = async ({ seconds = WHOLE_SECONDS }: LongOptions) => {
  const { FAULT } = process.env;
  if (FAULT !== undefined && !isPlanted) {
    const { differences, output } = await runWithFault(FAULT, FAULT_SECONDS);
    console.log(output);
    return { claim: `the planted fault ${FAULT} is found`, differences, passed: differences > 0 };
  }
  const result = await run(seconds);
  const { comparisons, differences, proven, provenCalls, leastTold } = result;
  const passed =
    differences.length === 0 &&
    comparisons > 0 &&
    proven >= MIN_PROVEN_SHARE * comparisons &&
    provenCalls >= Math.floor(MIN_CALL_SHARE * comparisons) &&
    leastTold >= Math.floor(comparisons / COMPARISONS_PER_LIE);
  return { claim: "no answer labelled proven differs from the chain's record", variants: { lists: result }, passed };
};
