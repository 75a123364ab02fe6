const isError = (value: unknown): value is Error & { readonly code?: unknown; readonly cause?: unknown } =>
  value instanceof Error;

/** Errors of connections to several addresses of one host name are one AggregateError. */
const firstOf = (error: unknown): unknown => (error instanceof AggregateError ? error.errors[0] : error);

const textOf = (error: Error): string => error.message.replaceAll(/\b(?:https?|wss?|rediss?):\S+/g, "its URL");

/**
 * Returns why a connection failed: a code of Node.js or OpenSSL, for example ENOTFOUND, else the error's text.
 * Never contains a URL, because URLs contain credentials.
 */
export const connectionFault = (error: unknown): string => {
  const first = firstOf(error);
  if (!isError(first)) {
    return "no response";
  }
  if (typeof first.code === "string") {
    return first.code;
  }
  return isError(first.cause) ? connectionFault(first.cause) : textOf(first);
};

const HINTS: readonly (readonly [pattern: RegExp, hint: string])[] = [
  [/^ENOTFOUND$|^EAI_AGAIN$/, "the host name does not resolve"],
  [/^ECONNREFUSED$/, "nothing listens on this host and port"],
  [/^ERR_SSL_|^EPROTO$/, "the server does not speak TLS on this port, or another version of it"],
  [
    /CERT|SELF_SIGNED|ISSUER|ERR_TLS_/,
    "the certificate is not trusted: NODE_EXTRA_CA_CERTS names a file with the authority",
  ],
  [/^E(?:HOST|NET)UNREACH$/, "no route to this host"],
];

/** Returns what a fault of `connectionFault` means, or undefined. */
export const connectionHint = (fault: string): string | undefined =>
  HINTS.find(([pattern]) => pattern.test(fault))?.[1];
