import { randomBytes } from "node:crypto";
import type { RunScript } from "../../core/sharedValues.ts";
import type { ReadPayment } from "./quote.ts";

/** The one request that may use a payment. */
export interface Reservation {
  /** `repeated`: an earlier settlement of the same request ended without an answer of the facilitator. */
  readonly state: "new" | "repeated";
  /** The payment was not used, and can be sent again. A repeated one may have been used before: it is suspended. */
  release(): Promise<void>;
  /** Nobody knows whether the payment was settled. Only the same request may send it again. */
  suspend(): Promise<void>;
}

/**
 * Replaces the text of a payment if it is `from`, and returns whether it was. An empty text is that of an unknown payment. A text ends
 * `seconds` after the first one. Rejects if the store does not respond.
 */
type Replace = (id: string, from: string, to: string, seconds: number) => Promise<boolean>;

/** Reserves payments, so that no payment is used twice. */
export class Reservations {
  readonly #replace: Replace;

  constructor(replace: Replace) {
    this.#replace = replace;
  }

  /** `digest` identifies the request that is paid for. Undefined if another has the payment. Rejects if the store does not respond. */
  async reserve(
    { id, seconds }: Pick<ReadPayment, "id" | "seconds">,
    digest: string,
  ): Promise<Reservation | undefined> {
    const token = randomBytes(9).toString("base64url");
    // No release deletes the second text.
    const [held, again, open] = [`held:${token}`, `again:${token}`, `open:${digest}`];
    const end = (from: string, to: string) => async (): Promise<void> => {
      await this.#replace(id, from, to, seconds);
    };
    const [release, suspend, suspendAgain] = [end(held, ""), end(held, open), end(again, open)];
    try {
      if (await this.#replace(id, "", held, seconds)) {
        return { state: "new", release, suspend };
      }
      const isRepeated = await this.#replace(id, open, again, seconds);
      return isRepeated ? { state: "repeated", release: suspendAgain, suspend: suspendAgain } : undefined;
    } catch (error) {
      // The text may have been replaced. Without this, the payment could not be used until it expires.
      for (const undo of [release, suspendAgain]) {
        undo().catch(() => undefined);
      }
      throw error;
    }
  }
}

/** Raise it if the stored format changes. */
const FORMAT = 1;

const REPLACE = `if (redis.call('GET', KEYS[1]) or '') ~= ARGV[1] then
  return 0
end
if ARGV[2] == '' then
  redis.call('DEL', KEYS[1])
elseif ARGV[1] == '' then
  redis.call('SET', KEYS[1], ARGV[2], 'EX', ARGV[3])
else
  redis.call('SET', KEYS[1], ARGV[2], 'KEEPTTL')
end
return 1`;

/** Returns reservations that all replicas share. */
export const sharedReservations = (run: RunScript): Reservations =>
  new Reservations(
    async (id, from, to, seconds) => (await run(REPLACE, `forebay:payment${FORMAT}:${id}`, [from, to, seconds])) === 1,
  );

/** Returns reservations of this process alone. */
export const localReservations = (nowMs: () => number = () => performance.now()): Reservations => {
  /** In the order in which they were made. */
  const texts = new Map<string, { readonly text: string; readonly expiresAtMs: number }>();
  return new Reservations(async (id, from, to, seconds) => {
    for (const [oldest, { expiresAtMs }] of texts) {
      if (expiresAtMs > nowMs()) {
        break;
      }
      texts.delete(oldest);
    }
    const found = texts.get(id);
    const known = found !== undefined && found.expiresAtMs > nowMs() ? found : undefined;
    if ((known?.text ?? "") !== from) {
      return false;
    }
    if (to === "") {
      texts.delete(id);
    } else {
      texts.set(id, { text: to, expiresAtMs: known?.expiresAtMs ?? nowMs() + seconds * 1_000 });
    }
    return true;
  });
};
