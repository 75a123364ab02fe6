export interface NodeUrl {
  /** scheme, host and port: all that undici needs to connect. */
  readonly origin: string;
  /** path and query; providers put their keys there. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Cuts everything secret of this endpoint out of a text that may be logged or shown. */
  redact(text: string): string;
}

/** Shorter parts of a path or query are words like `v2` or `mainnet`, and cutting them out would garble every text. */
const KEY_MIN_LENGTH = 12;
const CREDENTIAL_MIN_LENGTH = 4;

const decoded = (text: string): string => {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
};

/** Takes a node's URL apart: its user and password become a header (a URL is logged sooner or later, a header is not). */
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
