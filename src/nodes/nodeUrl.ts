export interface NodeUrl {
  /** Scheme, host and port. */
  readonly origin: string;
  /** Path and query. They may contain a provider's API key. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Replaces the secrets of this endpoint in a text that may be logged or shown. */
  redact(text: string): string;
}

/** Shorter parts of a path or query are words such as `v2` or `mainnet`. Replacing them would make texts unreadable. */
const KEY_MIN_LENGTH = 12;
const CREDENTIAL_MIN_LENGTH = 4;

const decoded = (text: string): string => {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
};

/** Splits a node's URL. User and password become a header, because URLs may be logged and headers are not. */
export const parseNodeUrl = (url: string, headers: Readonly<Record<string, string>> = {}): NodeUrl => {
  const { origin, username, password, pathname, search, searchParams } = new URL(url);
  const user = decoded(username);
  const pass = decoded(password);
  const authorization =
    username || password ? { authorization: `Basic ${Buffer.from(`${user}:${pass}`).toString("base64")}` } : {};
  const keys = [url, ...pathname.split("/"), ...searchParams.values()].filter(({ length }) => length >= KEY_MIN_LENGTH);
  const credentials = [
    ...[user, pass, username, password, ...Object.values(authorization)],
    ...Object.values(headers).flatMap((value) => [value, ...value.split(" ")]),
  ].filter(({ length }) => length >= CREDENTIAL_MIN_LENGTH);
  const secrets = [...keys, ...credentials].sort((a, b) => b.length - a.length);
  return {
    origin,
    path: pathname + search,
    headers: { ...authorization, ...headers },
    redact: (text) => secrets.reduce((clean, secret) => clean.replaceAll(secret, "[redacted]"), text),
  };
};
