import type { RateLimits } from "../access/rateLimits.ts";
import { LocalPlaces } from "../limits/places.ts";
import type { ServingChannel } from "./servingMember.ts";

/** Counts calls and connections of all serving processes, so that limits hold for the machine. */
export class MachineLimits {
  readonly #rates: Pick<RateLimits, "count">;
  readonly #places = new LocalPlaces();

  constructor(rates: Pick<RateLimits, "count">) {
    this.#rates = rates;
  }

  /** Counts for one process. The returned function releases its places when it has ended. */
  offerTo(channel: Pick<ServingChannel, "offer">): () => void {
    const held = new Map<string, number>();
    const hold = (name: string, by: 1 | -1): void => {
      const count = (held.get(name) ?? 0) + by;
      if (count > 0) {
        held.set(name, count);
      } else {
        held.delete(name);
      }
    };
    channel.offer({
      countCalls: ({ by, id, limit, calls }) => this.#rates.count(by, id, limit, calls),
      takePlaces: (places) => {
        const full = this.#places.take(places);
        if (full === undefined) {
          for (const { name } of places) {
            hold(name, 1);
          }
        }
        return full;
      },
      releasePlaces: (names) => {
        this.#places.release(names);
        for (const name of names) {
          hold(name, -1);
        }
      },
    });
    return () => {
      for (const [name, count] of held) {
        this.#places.release(Array<string>(count).fill(name));
      }
    };
  }
}
