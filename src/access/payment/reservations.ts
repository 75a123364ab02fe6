import { randomBytes } from "node:crypto";
import type { RunScript } from "../../core/sharedValues.ts";

/** The one request that may use a payment. */
export interface Reservation {
  /** `repeated`: an earlier settlement of the same request ended without an answer of the facilitator. */
  readonly state: "new" | "repeated";
  /** The payment was not used. It can be sent again. */
  release(): Promise<void>;
  /** Nobody knows whether the payment was settled. Only the same request may send it again. */
  suspend(): Promise<void>;
}

export interface ReservationRequest {
  /** Identifies the payment: its network, token, payer and nonce. */
  readonly id: string;
  /** Identifies the request that is paid for. */
  readonly digest: string;
  /** No settlement is possible after this time. */
  readonly seconds: number;
}

/** Reserves payments, so that no payment is used twice. */
export interface Reservations {
  /** Undefined if another request has the payment. Rejects if the store does not respond. */
  reserve(request: ReservationRequest): Promise<Reservation | undefined>;
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

const RELEASE = `if redis.call('GET', KEYS[1]) == 'held:' .. ARGV[1] then
  redis.call('DEL', KEYS[1])
end
return 1`;

const SUSPEND = `local value = redis.call('GET', KEYS[1])
if value == 'held:' .. ARGV[1] or value == 'again:' .. ARGV[1] then
  redis.call('SET', KEYS[1], 'open:' .. ARGV[2], 'KEEPTTL')
end
return 1`;

/** Creates reservations that all replicas share. */
export const createSharedReservations = (run: RunScript): Reservations => ({
  reserve: async ({ id, digest, seconds }) => {
    const key = `forebay:payment${FORMAT}:${id}`;
    const token = randomBytes(9).toString("base64url");
    const release = async (): Promise<void> => {
      await run(RELEASE, key, [token]);
    };
    const suspend = async (): Promise<void> => {
      await run(SUSPEND, key, [token, digest]);
    };
    let state: string;
    try {
      state = String(await run(RESERVE, key, [token, seconds, digest]));
    } catch (error) {
      // The script may have run. Without this, the payment could not be used until it expires.
      Promise.all([release(), suspend()]).catch(() => undefined);
      throw error;
    }
    if (state !== "new" && state !== "repeated") {
      return undefined;
    }
    return { state, suspend, release: state === "new" ? release : suspend };
  },
});

interface Entry {
  value: "held" | { readonly openTo: string };
  readonly expiresAtMs: number;
}

/** Expired entries are removed after this number of reservations. */
const SWEEP_INTERVAL = 1_000;

/** Creates reservations of this process alone. */
export const createLocalReservations = (nowMs: () => number = () => performance.now()): Reservations => {
  const entries = new Map<string, Entry>();
  let count = 0;
  const sweep = (): void => {
    count++;
    if (count % SWEEP_INTERVAL !== 0) {
      return;
    }
    for (const [id, { expiresAtMs }] of entries) {
      if (expiresAtMs <= nowMs()) {
        entries.delete(id);
      }
    }
  };
  return {
    reserve: async ({ id, digest, seconds }) => {
      sweep();
      const known = entries.get(id);
      const isKnown = known !== undefined && known.expiresAtMs > nowMs();
      if (isKnown && (known.value === "held" || known.value.openTo !== digest)) {
        return undefined;
      }
      const entry: Entry = isKnown ? known : { value: "held", expiresAtMs: nowMs() + seconds * 1_000 };
      entry.value = "held";
      entries.set(id, entry);
      const suspend = async (): Promise<void> => {
        entry.value = { openTo: digest };
      };
      const remove = async (): Promise<void> => {
        entries.delete(id);
      };
      return { state: isKnown ? "repeated" : "new", suspend, release: isKnown ? suspend : remove };
    },
  };
};
