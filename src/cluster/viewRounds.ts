import { setImmediate as endOfTurn } from "node:timers/promises";

/** A serving process, as the receiver of one chain's views. */
export interface ViewMember {
  /** Sends the next view. The member stops answering from the view before, and acknowledges the round. */
  prepare(round: number, update: Uint8Array): void;
  /** Every other member has stopped answering from an older view: the member may answer from this one. */
  commit(round: number): void;
}

export interface ViewRoundsOptions<C> {
  /** Returns the update of these changes. They count as published from then on. */
  encode(changes: readonly C[]): Uint8Array;
  /** Returns the whole published state; undefined before the first view. */
  snapshot(): Uint8Array | undefined;
  /** Called if a member did not acknowledge in time. It answers nothing until it has caught up. */
  onLagging(member: ViewMember): void;
  /** Called with the duration of each round. */
  onRound(seconds: number): void;
}

/**
 * The longest wait for an acknowledgement. A member that was stopped for STALE_MS of viewGate.ts answers nothing,
 * so that after this longer time it cannot answer from an older view.
 */
const ROUND_TIMEOUT_MS = 400;

type MemberState = "joining" | "active" | "lagging";

/**
 * Publishes the views of one chain to all serving processes, one round at a time: prepare, acknowledge, commit.
 * No member answers from a view while another one still answers from an older view.
 */
export class ViewRounds<C> {
  readonly #options: ViewRoundsOptions<C>;
  readonly #members = new Map<ViewMember, MemberState>();
  readonly #joined = new Map<ViewMember, () => void>();
  #changes: C[] = [];
  #round = 0;
  #running: Promise<void> | undefined;
  /** Members whose acknowledgement of the current round is missing. */
  #missing = new Set<ViewMember>();
  #complete: (() => void) | undefined;

  constructor(options: ViewRoundsOptions<C>) {
    this.#options = options;
  }

  /** Adds a member. Resolves when it has the published state, or at once if nothing is published yet. */
  join(member: ViewMember): Promise<void> {
    this.#members.set(member, "joining");
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#joined.set(member, resolve);
    this.#start();
    return promise;
  }

  leave(member: ViewMember): void {
    this.#members.delete(member);
    this.#joined.get(member)?.();
    this.#joined.delete(member);
    this.#recordAnswer(member);
  }

  /** Records that a member has stopped answering from the view before this round. */
  acknowledge(member: ViewMember, round: number): void {
    if (round !== this.#round) {
      this.#catchUp(member);
      return;
    }
    if (this.#members.get(member) === "lagging") {
      this.#catchUp(member);
    }
    this.#recordAnswer(member);
  }

  publish(change: C): void {
    this.#changes.push(change);
    this.#start();
  }

  /** Resolves when all changes of before are committed. */
  async settled(): Promise<void> {
    await this.#running;
  }

  /** A late acknowledgement shows that the member runs again. It gets the whole state. */
  #catchUp(member: ViewMember): void {
    if (this.#members.get(member) === "lagging") {
      this.#members.set(member, "joining");
      this.#start();
    }
  }

  #start(): void {
    this.#running ??= this.#run().finally(() => {
      this.#running = undefined;
      if (this.#changes.length > 0 || this.#inState("joining").length > 0) {
        this.#start();
      }
    });
  }

  /** The first step waits, so that one update has all changes of an event loop turn. */
  async #run(): Promise<void> {
    await Promise.resolve();
    for (;;) {
      const joining = this.#inState("joining");
      if (joining.length > 0) {
        await this.#admit(joining);
      } else if (this.#changes.length > 0) {
        await this.#publishChanges();
      } else {
        return;
      }
    }
  }

  /** The view stays the same, so that the active members take no part. */
  async #admit(joining: readonly ViewMember[]): Promise<void> {
    const state = this.#options.snapshot();
    if (state === undefined) {
      for (const member of joining) {
        this.#activate(member);
      }
      return;
    }
    await this.#runRound(joining, state);
  }

  async #publishChanges(): Promise<void> {
    const changes = this.#changes;
    this.#changes = [];
    const active = this.#inState("active");
    const update = this.#options.encode(changes);
    if (active.length > 0) {
      await this.#runRound(active, update);
    }
  }

  async #runRound(members: readonly ViewMember[], update: Uint8Array): Promise<void> {
    const startMs = performance.now();
    this.#round++;
    const round = this.#round;
    this.#missing = new Set(members);
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#complete = resolve;
    for (const member of members) {
      member.prepare(round, update);
    }
    const timer = setTimeout(resolve, ROUND_TIMEOUT_MS);
    await promise;
    clearTimeout(timer);
    if (this.#missing.size > 0) {
      // This process may have been stopped too: acknowledgements that have arrived are read first.
      await endOfTurn();
    }
    for (const member of members) {
      this.#finish(member, round);
    }
    this.#options.onRound((performance.now() - startMs) / 1_000);
  }

  #finish(member: ViewMember, round: number): void {
    if (!this.#members.has(member)) {
      return;
    }
    if (this.#missing.delete(member)) {
      this.#members.set(member, "lagging");
      this.#options.onLagging(member);
      return;
    }
    member.commit(round);
    this.#activate(member);
  }

  #activate(member: ViewMember): void {
    this.#members.set(member, "active");
    this.#joined.get(member)?.();
    this.#joined.delete(member);
  }

  #recordAnswer(member: ViewMember): void {
    this.#missing.delete(member);
    if (this.#missing.size === 0) {
      this.#complete?.();
    }
  }

  #inState(state: MemberState): readonly ViewMember[] {
    return [...this.#members].flatMap(([member, each]) => (each === state ? [member] : []));
  }
}
