import { createRequire } from "node:module";
import type { DataHandledable } from "ioredis/built/DataHandler.js";
import type { Decoder } from "ioredis/built/resp/decoder.js";
import { RedisReplySize } from "./redisReplySize.ts";

const require = createRequire(import.meta.url);

/** The part of ioredis that reads the replies of one connection. */
interface Connection {
  readonly redis: DataHandledable;
}

/** The lengths in the replies of one connection. Undefined after a reply that ended it. */
type Sizes = RedisReplySize | undefined;

let isGuarded = false;

/**
 * Makes each reply of Redis that ioredis cannot read end its connection. The client connects again.
 * Without it, ioredis 6 throws such an error where nothing can catch it, and the process ends. It also buffers a value of any size.
 * The parser has no option for either, so that its methods are replaced.
 */
export const guardRedisReplies = (): void => {
  if (isGuarded) {
    return;
  }
  isGuarded = true;
  const { default: DataHandler }: typeof import("ioredis/built/DataHandler.js") = require("ioredis/built/DataHandler");
  const { Decoder }: typeof import("ioredis/built/resp/decoder.js") = require("ioredis/built/resp/decoder");
  const sizes = new WeakMap<Decoder, Sizes>();
  const { write } = Decoder.prototype;
  Object.assign(Decoder.prototype, {
    write(this: Decoder, chunk: Uint8Array): void {
      const size: Sizes = sizes.has(this) ? sizes.get(this) : new RedisReplySize();
      if (size === undefined) {
        // Later replies of an ended connection would answer commands of the next one.
        return;
      }
      sizes.set(this, undefined);
      size.check(chunk);
      write.call(this, chunk);
      sizes.set(this, size);
    },
  });
  Object.assign(DataHandler.prototype, {
    /** The error unwinds the decoder, whose caller ends the connection. */
    dispatch(handle: () => void): void {
      handle();
    },
    returnFatalError(this: Connection, error: Error): void {
      const { stream } = this.redis;
      this.redis.recoverFromFatalError(error, error, { offlineQueue: false });
      // ioredis ends the stream, and would read for two more seconds.
      stream.destroy();
    },
  });
};
