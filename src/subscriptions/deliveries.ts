import { TurnClock } from "../jsonrpc/turnClock.ts";
import type { Log } from "../telemetry/telemetry.ts";
import { createNotification, type Delivered, type Notification, type Subscription } from "./subscriber.ts";

/** Events take this much of a turn of the event loop. What is sent reaches the sockets behind it. */
const MAX_TURN_MS = 5;
/** Receivers of an event that has waited for so long are closed. So events that arise faster than they can be sent do not pile up. */
const MAX_WAIT_MS = 10_000;
/** Steps of one kind, before those of the next. */
const STEPS_OF_KIND = 64;
const TRY_AGAIN_LATER = 1013;

/** Events of one kind and chain: an iterator that sends to one receiver at a time. */
interface Waiting {
  readonly steps: Iterator<unknown>;
  /** The time until which it is sent. */
  readonly untilMs: number;
  /** The turn in which the event arose. */
  readonly burst: number;
}

/** Sends the events of all chains in slices of a few milliseconds. Kinds of events take turns; each keeps its order. */
export class Deliveries {
  readonly #log: Pick<Log, "warn">;
  readonly #clock: TurnClock;
  /** By kind and chain, in the order of their turns. */
  readonly #waiting = new Map<Delivered, Waiting[]>();
  #isRunning = false;
  /** The number of the turns in which events arose. */
  #burst = 0;
  #isSameTurn = false;
  /** What is being sent. */
  #current: Waiting | undefined;
  readonly #endTurn = (): void => {
    this.#isSameTurn = false;
  };

  constructor(log: Pick<Log, "warn">, maxTurnMs = MAX_TURN_MS) {
    this.#log = log;
    this.#clock = new TurnClock({ maxMs: maxTurnMs });
  }

  /** Sends an event to the receivers, which are asked for one by one. `body` is the UTF-8 JSON text of the result; it is asked for once. */
  send(delivered: Delivered, body: () => Uint8Array, receivers: Iterable<Subscription>): void {
    this.run(delivered, this.#sendTo(delivered, body, receivers));
  }

  /** Takes the steps one by one: now, or later if this turn has no time, and after all earlier ones of their kind. */
  run(kind: Delivered, steps: Iterator<unknown>): void {
    const added = { steps, untilMs: performance.now() + MAX_WAIT_MS, burst: this.#burstOfTurn() };
    const others = this.#waiting.get(kind);
    if (others !== undefined) {
      others.push(added);
      return;
    }
    const isFirst = this.#waiting.size === 0;
    this.#waiting.set(kind, [added]);
    if (isFirst && !this.#isRunning) {
      this.#runTurn();
    }
  }

  /** Resolves when all that was added of this kind is sent. */
  async sent(kind: Delivered): Promise<void> {
    if (this.#waiting.has(kind)) {
      await new Promise<void>((resolve) => this.run(kind, { next: () => ({ done: true, value: resolve() }) }));
    }
  }

  /** Sends to one receiver at once. Closes it instead if the event has waited for too long. */
  notify(delivered: Delivered, { idBytes, subscriber }: Subscription, message: Notification): void {
    if (this.#current !== undefined && performance.now() > this.#current.untilMs) {
      this.#log.warn({}, "closing a subscriber: its events wait for too long");
      subscriber.close(TRY_AGAIN_LATER, "events wait for too long");
      return;
    }
    const burst = this.#current?.burst ?? this.#burstOfTurn();
    subscriber.notify(message.render(idBytes), burst);
    delivered.inc(1);
  }

  *#sendTo(delivered: Delivered, body: () => Uint8Array, receivers: Iterable<Subscription>): Generator<void> {
    let message: Notification | undefined;
    for (const receiver of receivers) {
      message ??= createNotification([body()]);
      this.notify(delivered, receiver, message);
      yield;
    }
  }

  #burstOfTurn(): number {
    if (!this.#isSameTurn) {
      this.#isSameTurn = true;
      this.#burst++;
      setImmediate(this.#endTurn);
    }
    return this.#burst;
  }

  readonly #runTurn = (): void => {
    this.#isRunning = true;
    // A kind that is added again comes after the others.
    for (const [kind, events] of this.#waiting) {
      if (this.#clock.isOver) {
        break;
      }
      this.#runSome(events);
      this.#waiting.delete(kind);
      if (events.length > 0) {
        this.#waiting.set(kind, events);
      }
    }
    this.#isRunning = false;
    if (this.#waiting.size > 0) {
      setImmediate(this.#runTurn);
    }
  };

  #runSome(events: Waiting[]): void {
    let [first] = events;
    for (let step = 1; first !== undefined; step++) {
      this.#current = first;
      if (this.#isDone(first)) {
        events.shift();
      }
      [first] = step < STEPS_OF_KIND && !this.#clock.isOver ? events : [];
    }
    this.#current = undefined;
  }

  /** Takes one step. Returns true after the last one, or if it failed. */
  #isDone({ steps }: Waiting): boolean {
    try {
      return steps.next().done === true;
    } catch (err) {
      this.#log.warn({ err }, "an event could not be sent");
      return true;
    }
  }
}
