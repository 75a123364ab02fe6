import { cp, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { createRandom } from "../support/builders/randomValues.ts";
import { ask, askAll, isHit } from "../support/clients/askAll.ts";
import { metric, rpc } from "../support/clients/rpc.ts";
import { until } from "../support/clients/until.ts";
import { type RunningCommand, startCommand } from "../support/servers/command.ts";
import { withLifespan } from "../support/servers/withLifespan.ts";
import { damagePage, type FolderPage, listPages } from "./support/damagedPages.ts";
import { type FolderClients, FolderReaders } from "./support/folderReaders.ts";
import { createFolderWorld } from "./support/folderWorld.ts";
import { canLimitFolders, fillFolder, limitedFolder } from "./support/limitedFolder.ts";
import type { LongOptions } from "./support/longOptions.ts";

const WHOLE_KILLS = 50;
const SHORT_KILLS = 3;
/** A shorter run has a few kills and pages. */
const SHORT_SECONDS = 60;
/** What a killed process may lose. */
const LOST_MS = 2_000;
const MAX_UP_MS = 2_000;
/** One process of so many ends without a kill, and saves known state. */
const KILLS_A_SAVE = 5;
/** Entries that are asked for after a kill: the newest ones that must be there. */
const MAX_KEPT = 100;
const WHOLE_SPREAD = 12;
const RESTORED = "known state is restored from the data folder";
/** The pages of a short run. */
const SHORT_PAGES = /^header$|of entries|of state_rows|^1 of/;
const SEED = Number(process.env.SEED ?? 1);

interface Run extends FolderClients {
  readonly parent: string;
  readonly ends: (() => Promise<void>)[];
}

interface Kills {
  kills: number;
  /** Entries that a killed process may not lose: found, lost, and not known because the disk was too slow. */
  kept: number;
  lost: number;
  late: number;
  /** Values that are stored, and how many of them a node was asked for. */
  known: number;
  forgotten: number;
}

const start = (run: Run, folder: string, launcher: readonly string[] = []): Promise<RunningCommand> =>
  startCommand({ after: (end) => run.ends.push(end) }, run.world.configOf(folder), launcher);

const isUp = async ({ opsUrl }: RunningCommand): Promise<boolean> => (await metric(opsUrl, "forebay_disk_up")) === 1;

/** Waits until entries are written to the folder. */
const storesAgain = (run: Run, forebay: RunningCommand): Promise<void> =>
  until(async () => {
    await askAll(`${forebay.url}/sealed`, run.world.calls.slice(0, 8));
    return (await isUp(forebay)) && (await metric(forebay.opsUrl, "forebay_disk_entries")) > 0;
  }, "entries are stored again");

const countErrors = ({ opsUrl }: RunningCommand, reason: string): Promise<number> =>
  metric(opsUrl, "forebay_disk_errors_total", `reason="${reason}"`);

/**
 * Asks for entries that must have survived, one after the other. A miss says nothing in a process whose disk was too slow once: it
 * may have come in the pause after that.
 */
const countLost = async (run: Run, forebay: RunningCommand, killedMs: number, kills: Kills): Promise<void> => {
  const url = `${forebay.url}/sealed`;
  const [first = { method: "eth_chainId", params: [] }] = run.world.calls;
  await until(async () => isHit(await ask(url, first), "disk"), "entries are stored and used");
  for (const [call, atMs] of run.answeredMs) {
    if (killedMs - atMs <= LOST_MS) {
      // This kill may have lost it, and a later one must not be blamed.
      run.answeredMs.delete(call);
    }
  }
  for (const call of [...run.answeredMs.keys()].slice(-MAX_KEPT)) {
    if (isHit(await ask(url, call), "disk")) {
      kills.kept++;
    } else if ((await countErrors(forebay, "timeout")) > 0) {
      kills.late++;
    } else {
      kills.lost++;
    }
  }
};

/** Asks for all values, while no block comes. All of them are stored. */
const countForgotten = async (run: Run, { url, opsUrl, lines }: RunningCommand, kills: Kills): Promise<void> => {
  const { world } = run;
  await until(() => lines.some(({ msg }) => msg === RESTORED), "known state is restored");
  await until(async () => (await metric(opsUrl, "forebay_state_following")) === 1, "state is followed");
  await until(
    async () => Number((await rpc(`${url}/state`, "eth_blockNumber")).body.result) === world.height(),
    "head",
  );
  const reads = world.accounts.map((account) => ({ method: "eth_getBalance", params: [account, "latest"] }));
  const answers = await askAll(`${url}/state`, reads);
  kills.known += answers.length;
  kills.forgotten += answers.filter((answer) => !isHit(answer, "state")).length;
};

/** Kills forebay again and again on one folder, while clients read and entries are written. */
const killAgain = async (run: Run, folder: string, count: number): Promise<Kills> => {
  const kills: Kills = { kills: 0, kept: 0, lost: 0, late: 0, known: 0, forgotten: 0 };
  let killedMs = performance.now();
  let hasRows = false;
  for (let round = 0; kills.kills < count; round++) {
    run.world.mines = false;
    const forebay = await start(run, folder);
    await until(() => isUp(forebay), "the folder is open");
    if (hasRows) {
      await countForgotten(run, forebay, kills);
    }
    await countLost(run, forebay, killedMs, kills);
    run.world.mines = true;
    const readers = new FolderReaders(forebay.url, run);
    await sleep(LOST_MS + run.random() * MAX_UP_MS);
    if (round % KILLS_A_SAVE === 0) {
      await readers.end();
      forebay.signal("SIGTERM");
      hasRows = true;
    } else {
      readers.expectEnd();
      forebay.signal("SIGKILL");
      kills.kills++;
    }
    killedMs = performance.now();
    await Promise.all([forebay.ended, readers.end()]);
    await forebay.end();
  }
  return kills;
};

/** Runs an action while clients read. */
const whileRead = async (run: Run, forebay: RunningCommand, act: () => Promise<void>): Promise<void> => {
  const readers = new FolderReaders(forebay.url, run);
  try {
    await act();
  } finally {
    await readers.end();
    await forebay.end();
  }
};

/** Fills the disk, and makes room again. */
const fill = async (run: Run): Promise<string> => {
  if (!canLimitFolders()) {
    return "skipped: this user may not mount a small folder (unshare -Urm)";
  }
  const folder = join(run.parent, "small");
  const forebay = await start(run, join(folder, "data"), await limitedFolder(folder));
  await until(() => isUp(forebay), "the folder is open");
  await whileRead(run, forebay, async () => {
    const empty = await fillFolder(forebay.pid, folder);
    await until(async () => (await countErrors(forebay, "full")) > 0, "the disk is full");
    await empty();
    const entries = () => metric(forebay.opsUrl, "forebay_disk_entries");
    const before = await entries();
    await until(async () => (await entries()) > before, "entries are stored again");
  });
  return "passed";
};

/** Removes the folder while it is used. */
const remove = async (run: Run, folder: string): Promise<void> => {
  const forebay = await start(run, folder);
  await until(() => isUp(forebay), "the folder is open");
  await whileRead(run, forebay, async () => {
    await rm(folder, { recursive: true });
    await until(async () => (await countErrors(forebay, "removed")) > 0, "the loss is noticed");
    await storesAgain(run, forebay);
  });
};

/** Starts forebay on a copy of the folder with each of the damages. */
const damage = async (run: Run, folder: string, pages: readonly FolderPage[]): Promise<number> => {
  for (const [index, page] of pages.entries()) {
    const copy = join(run.parent, `damaged${index}`);
    await cp(folder, copy, { recursive: true });
    damagePage(copy, page);
    const forebay = await start(run, copy);
    await whileRead(run, forebay, async () => {
      await storesAgain(run, forebay);
      await askAll(`${forebay.url}/sealed`, [...run.answeredMs.keys()]);
    });
    await rm(copy, { recursive: true });
  }
  return pages.length;
};

/**
 * Kills forebay and starts it again on one data folder, fills the disk, removes the folder and damages its pages. Clients read blocks,
 * receipts, logs and state meanwhile. No answer is wrong, no request fails, and what must survive does.
 */
export const long = ({ seconds }: LongOptions) =>
  withLifespan(async (t) => {
    const isShort = seconds !== undefined && seconds < SHORT_SECONDS;
    const parent = await mkdtemp(join(tmpdir(), "forebay-folder-"));
    t.after(() => rm(parent, { recursive: true, force: true }));
    const world = await createFolderWorld(t);
    const tally = { answers: 0, wrong: 0, failed: 0, shown: [] };
    const run: Run = { parent, world, tally, answeredMs: new Map(), random: createRandom(SEED), ends: [] };
    t.after(() => Promise.all(run.ends.map((end) => end())));
    const folder = join(parent, "data");
    const kills = await killAgain(run, folder, isShort ? SHORT_KILLS : WHOLE_KILLS);
    const pages = isShort
      ? (await listPages(folder, 1)).filter(({ name }) => SHORT_PAGES.test(name))
      : await listPages(folder, WHOLE_SPREAD);
    const damages = await damage(run, folder, pages);
    const full = await fill(run);
    await remove(run, folder);
    const { lost, forgotten, kept, known } = kills;
    const { wrong, failed } = tally;
    return {
      claim: `no answer is wrong, no request fails, entries live after ${LOST_MS} ms, and values after a save`,
      ...tally,
      ...kills,
      damages,
      full,
      passed: wrong + failed + lost + forgotten === 0 && kept > 0 && known > 0,
    };
  });
