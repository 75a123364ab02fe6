import { randomBytes } from "node:crypto";
import { setTimeout as wait } from "node:timers/promises";
import type { RunScript } from "../core/sharedValues.ts";
import { decodeValue, encodeValue } from "./redisValue.ts";

const GET = "return redis.call('GET', KEYS[1])";
const SET = "return redis.call('SET', KEYS[1], ARGV[1], 'EX', ARGV[2])";
const DELETE = "return redis.call('DEL', KEYS[1])";

/** Takes the lease, or extends the own one. */
const TAKE = `local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[1] then
  return 0
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1`;

/** Only the holder writes. It extends the lease with each snapshot, of which there is one a minute. */
const LEASE_MS = 150_000;
/** A snapshot outlives the replica that wrote it until another one has the lease. */
const STORED_SECONDS = 900;
/** Another replica may still read the chunks of a snapshot that was replaced. */
const REPLACED_SECONDS = 60;
const EXPIRE = "return redis.call('EXPIRE', KEYS[1], ARGV[1])";
/** Redis is connected in the background while the chain reads its first head. */
const CONNECT_MS = 1_000;
const RETRY_MS = 100;
/** Values are learned again if Redis is so slow that reading takes longer. */
const MAX_READ_MS = 10_000;

const POINTER = /^(?<id>[\w-]{1,32}):(?<chunks>\d{1,6})$/;

/** Redis fails or is slow for this replica. The snapshot may be whole. */
export class RedisUnavailable extends Error {
  override readonly name = "RedisUnavailable";
}

/** Snapshots in Redis, in chunks. The name points to the chunks of the newest one that is complete. */
export class RedisSnapshots {
  /** The limit of all snapshots; one is a sixteenth: 64 MiB. */
  readonly maxBytes = 1024 * 1024 * 1024;
  readonly #script: RunScript;
  readonly #token = randomBytes(9).toString("base64url");

  constructor(run: RunScript) {
    this.#script = run;
  }

  /** Rejects with RedisUnavailable. The scripts count and log their failures. */
  async #run(...args: Parameters<RunScript>): Promise<unknown> {
    try {
      return await this.#script(...args);
    } catch (cause) {
      throw new RedisUnavailable("a script failed", { cause });
    }
  }

  /** Redis is never closed to snapshots: the listener is called at once. */
  onOpened(listener: () => void): () => void {
    listener();
    return () => undefined;
  }

  /** Returns the chunks of the newest complete snapshot with this name. Throws if one is missing, and if Redis is slow. */
  async *readSnapshot(name: string): AsyncGenerator<Uint8Array, void> {
    const { id, chunks } = (await this.#firstPointer(name)) ?? { id: "", chunks: 0 };
    const endMs = performance.now() + MAX_READ_MS;
    for (let number = 0; number < chunks; number++) {
      if (performance.now() >= endMs) {
        throw new RedisUnavailable("Redis is slow");
      }
      const key = `${name}:${id}:${number}`;
      const text = await this.#run(GET, key, []);
      const entry = typeof text === "string" ? await decodeValue(key, Buffer.from(text, "base64")) : undefined;
      if (entry === undefined) {
        throw new Error("a chunk is missing in Redis");
      }
      yield entry.body;
    }
  }

  /** Replaces the snapshot with this name, if this replica has the lease or gets it. Returns whether it is written. */
  async writeSnapshot(name: string, chunks: AsyncIterable<Uint8Array>): Promise<boolean> {
    try {
      return (await this.#takeLease(name)) && (await this.#write(name, chunks));
    } catch (error) {
      if (error instanceof RedisUnavailable) {
        return false;
      }
      throw error;
    }
  }

  async removeSnapshot(name: string): Promise<void> {
    await this.#run(DELETE, name, []).catch(() => undefined);
  }

  async #write(name: string, chunks: AsyncIterable<Uint8Array>): Promise<boolean> {
    const id = randomBytes(9).toString("base64url");
    let number = 0;
    for await (const body of chunks) {
      const key = `${name}:${id}:${number++}`;
      const value = await encodeValue(key, { body, isFinal: false, storedAtMs: Date.now() });
      await this.#run(SET, key, [value.toString("base64"), STORED_SECONDS]);
    }
    const before = await this.#pointer(name);
    // A holder whose lease has expired does not replace the snapshot of another one.
    if (!(await this.#takeLease(name))) {
      return false;
    }
    await this.#run(SET, name, [`${id}:${number}`, STORED_SECONDS]);
    for (let old = 0; old < (before?.chunks ?? 0); old++) {
      await this.#run(EXPIRE, `${name}:${before?.id}:${old}`, [REPLACED_SECONDS]);
    }
    return true;
  }

  async #takeLease(name: string): Promise<boolean> {
    return (await this.#run(TAKE, `${name}:lease`, [this.#token, LEASE_MS])) === 1;
  }

  async #pointer(name: string): Promise<{ readonly id: string; readonly chunks: number } | undefined> {
    const groups = POINTER.exec(String(await this.#run(GET, name, [])))?.groups;
    return groups && { id: groups.id ?? "", chunks: Number(groups.chunks) };
  }

  /** Returns undefined if Redis does not respond within a second or two. */
  async #firstPointer(name: string) {
    const endMs = performance.now() + CONNECT_MS;
    do {
      try {
        return await this.#pointer(name);
      } catch {
        await wait(RETRY_MS);
      }
    } while (performance.now() < endMs);
    return undefined;
  }
}
