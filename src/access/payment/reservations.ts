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

/** Reserves payments, so that no payment is used twice. */
export interface Reservations {
  /** `digest` identifies the request that is paid for. Undefined if another has the payment. Rejects if the store does not respond. */
  reserve(payment: Pick<ReadPayment, "id" | "seconds">, digest: string): Promise<Reservation | undefined>;
}

/** Raise it if the stored format changes. */
const FORMAT = 1;

/**
 * A reservation has the text `held:<token>`, and `open:<digest>` after a settlement without an answer.
 * While the same request uses it again, the text is `again:<token>`, which no release deletes.
 */
const RESERVE = `local value = redis.call('GET', KEYS[1])
if not value then
  redis.call('SET', KEYS[1], 'held:' .. ARGV[1], 'EX', ARGV[2], 'NX')
  return 'new'
end
if value == 'open:' .. ARGV[3] then
  redis.call('SET', KEYS[1], 'again:' .. ARGV[1], 'KEEPTTL')
  return 'repeated'
end
return 'used'`;

/** The third argument is `release` or `suspend`. */
const END = `local value = redis.call('GET', KEYS[1])
if value == 'held:' .. ARGV[1] and ARGV[3] == 'release' then
  redis.call('DEL', KEYS[1])
elseif value == 'held:' .. ARGV[1] or value == 'again:' .. ARGV[1] then
  redis.call('SET', KEYS[1], 'open:' .. ARGV[2], 'KEEPTTL')
end
return 1`;

/** Returns reservations that all replicas share. */
export const sharedReservations = (run: RunScript): Reservations => ({
  reserve: async ({ id, seconds }, digest) => {
    const key = `forebay:payment${FORMAT}:${id}`;
    const token = randomBytes(9).toString("base64url");
    const end = async (how: "release" | "suspend"): Promise<void> => {
      await run(END, key, [token, digest, how]);
    };
    let state: string;
    try {
      state = String(await run(RESERVE, key, [token, seconds, digest]));
    } catch (error) {
      // The script may have run. Without this, the payment could not be used until it expires.
      end("release").catch(() => undefined);
      throw error;
    }
    return state === "new" || state === "repeated"
      ? { state, release: () => end("release"), suspend: () => end("suspend") }
      : undefined;
  },
});

/** Returns reservations of this process alone. */
export const localReservations = (nowMs: () => number = () => performance.now()): Reservations => {
  /** In the order in which they were made. An entry is open to one digest, or held. */
  const entries = new Map<string, { openTo: string | undefined; readonly expiresAtMs: number }>();
  return {
    reserve: async ({ id, seconds }, digest) => {
      const now = nowMs();
      for (const [oldest, { expiresAtMs }] of entries) {
        if (expiresAtMs > now) {
          break;
        }
        entries.delete(oldest);
      }
      const found = entries.get(id);
      const known = found !== undefined && found.expiresAtMs > now ? found : undefined;
      if (known !== undefined && known.openTo !== digest) {
        return undefined;
      }
      const entry = known ?? { openTo: undefined, expiresAtMs: now + seconds * 1_000 };
      entry.openTo = undefined;
      entries.set(id, entry);
      const suspend = async (): Promise<void> => {
        entry.openTo = digest;
      };
      const remove = async (): Promise<void> => {
        entries.delete(id);
      };
      return known === undefined
        ? { state: "new", suspend, release: remove }
        : { state: "repeated", suspend, release: suspend };
    },
  };
};
