import { connectionFault, connectionHint } from "../core/connectionFault.ts";

export interface RedisFault {
  /** A code, for example ENOTFOUND, or the first word of a reply of Redis, for example WRONGPASS. */
  readonly reason: string;
  readonly hint?: string | undefined;
}

const REPLY = /\b(?:NOAUTH|WRONGPASS|NOPERM|DENIED|LOADING|MASTERDOWN|CLUSTERDOWN)\b/;

const REPLY_HINTS: Readonly<Record<string, string>> = {
  NOAUTH: "the server requires a password: redis://:PASSWORD@host",
  WRONGPASS: "the server rejects the user name or the password of the URL",
  NOPERM: "the ACL of the user does not permit a command that forebay needs",
  DENIED: "the server is in protected mode: set a password, or bind it to this network",
};

/** A cluster hides the error of its node, and the sentinels that of theirs. */
const causeOf = (error: unknown): unknown =>
  error instanceof Error && "lastNodeError" in error && error.lastNodeError instanceof Error
    ? error.lastNodeError
    : error;

const hintOf = (reason: string, tls: boolean): string | undefined => {
  if (tls && reason === "ETIMEDOUT") {
    return "no TLS handshake: use redis:// if the server has no TLS";
  }
  if (!tls && (reason === "ECONNRESET" || reason === "EPIPE")) {
    return "the server closed the connection: use rediss:// if it requires TLS";
  }
  if (/cluster support disabled/.test(reason)) {
    return "the server is not part of a cluster: use redis://";
  }
  return REPLY_HINTS[reason] ?? connectionHint(reason);
};

/** Returns why a connection to Redis failed, without credentials. */
export const redisFault = (error: unknown, tls: boolean): RedisFault => {
  const cause = causeOf(error);
  const reply = cause instanceof Error ? REPLY.exec(cause.message)?.[0] : undefined;
  // ioredis adds the changing delay of its next attempt.
  const reason = reply ?? connectionFault(cause).replace(/ Retrying from scratch.*$/, "");
  return { reason, hint: hintOf(reason, tls) };
};
