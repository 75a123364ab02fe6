/** Hosts, kind and credentials of a Redis deployment. */
export interface RedisAddress {
  readonly kind: "single" | "sentinel" | "cluster";
  /** The sentinels, if `kind` is `sentinel`; otherwise the servers. */
  readonly hosts: readonly { readonly host: string; readonly port: number }[];
  /** Name of the master that the sentinels monitor. */
  readonly name?: string;
  readonly db: number;
  readonly tls: boolean;
  readonly username?: string;
  readonly password?: string;
  readonly sentinelPassword?: string;
}

const URL_FORM =
  /^redis(?<tls>s?)(?:\+(?<kind>sentinel|cluster))?:\/\/(?:(?<user>[^@/]*)@)?(?<hosts>[^/?]+)(?:\/(?<path>[^?]*))?(?:\?(?<query>.*))?$/;
const HOST_FORM = /^(?<host>\[[0-9a-fA-F:.]+\]|[^:[\]]+)(?::(?<port>\d{1,5}))?$/;
const REDIS_PORT = 6379;
const SENTINEL_PORT = 26_379;

/** No message contains the URL, because it may contain a password. */
const invalid = (reason: string): Error => new Error(`Redis URL: ${reason}`);

/** Parses master name and database. Throws if the path does not fit the kind of deployment. */
const parsePath = (text: string, kind: RedisAddress["kind"]): Pick<RedisAddress, "name" | "db"> => {
  const parts = text.split("/").filter((part) => part !== "");
  const name = kind === "sentinel" ? parts.shift() : undefined;
  if (kind === "sentinel" && name === undefined) {
    throw invalid("the master's name is missing after the sentinels");
  }
  const db = Number(parts.shift() ?? 0);
  if (!Number.isInteger(db) || db < 0 || parts.length > 0) {
    throw invalid("the database must be a number");
  }
  if (kind === "cluster" && db !== 0) {
    throw invalid("a cluster has only database 0");
  }
  return { db, ...(name !== undefined && { name: decode(name) }) };
};

/**
 * Parses a Redis URL: `redis://host:port/db`, `redis+sentinel://h1,h2/name` (or `/name/db`), `redis+cluster://h1,h2`.
 * `user:password@` may precede the hosts. `rediss` selects TLS. `?sentinelPassword=` is the password of the sentinels.
 * Throws an error without the URL.
 */
export const parseRedisUrl = (url: string): RedisAddress => {
  const groups = URL_FORM.exec(url)?.groups;
  if (groups === undefined) {
    throw invalid("expected redis://, rediss://, redis+sentinel:// or redis+cluster:// and hosts");
  }
  const kind = groups.kind === "sentinel" || groups.kind === "cluster" ? groups.kind : "single";
  const hosts = parseHosts(groups.hosts ?? "", kind === "sentinel" ? SENTINEL_PORT : REDIS_PORT);
  if (kind === "single" && hosts.length > 1) {
    throw invalid("several hosts need +sentinel or +cluster");
  }
  const path = parsePath(groups.path ?? "", kind);
  const [username, password] = parseUser(groups.user ?? "");
  const sentinelPassword = new URLSearchParams(groups.query ?? "").get("sentinelPassword");
  return {
    kind,
    hosts,
    ...path,
    tls: groups.tls === "s",
    ...(username !== "" && { username }),
    ...(password !== "" && { password }),
    ...(sentinelPassword !== null && { sentinelPassword }),
  };
};

const parseHosts = (text: string, defaultPort: number): RedisAddress["hosts"] =>
  text.split(",").map((part) => {
    const groups = HOST_FORM.exec(part)?.groups;
    const port = Number(groups?.port ?? defaultPort);
    if (groups?.host === undefined || port < 1 || port > 65_535) {
      throw invalid("a host is not host or host:port");
    }
    return { host: groups.host.replace(/^\[|\]$/g, ""), port };
  });

const parseUser = (text: string): readonly [username: string, password: string] => {
  const colon = text.indexOf(":");
  return colon < 0 ? [decode(text), ""] : [decode(text.slice(0, colon)), decode(text.slice(colon + 1))];
};

const decode = (text: string): string => {
  try {
    return decodeURIComponent(text);
  } catch {
    throw invalid("a % is not followed by two hex digits");
  }
};
