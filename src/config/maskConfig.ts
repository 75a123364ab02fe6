import type { Config } from "./schema.ts";

const MASK = "***";
/** Every part of a URL except scheme and hosts may be secret: credentials, path, query. */
const URL_FORM = /^([a-z][a-z0-9+]*:\/\/)(?:[^/]*@)?([^/?#]*)(.*)$/s;

/** With any other character, a part of the URL may be in the place of the host. */
const HOSTS_FORM = /^[\w.,:[\]-]*$/;
/** Names of the options that contain a URL. */
const URL_OPTIONS: ReadonlySet<string> = new Set(["url", "wsUrl", "feeds", "passthrough", "redis"]);

const maskUrl = (text: string): string => {
  const [, scheme, hosts, rest] = URL_FORM.exec(text) ?? [];
  if (scheme === undefined || hosts === undefined) {
    return text;
  }
  if (!HOSTS_FORM.test(hosts)) {
    return `${scheme}${MASK}`;
  }
  return `${scheme}${hosts}${rest === undefined || rest === "" || rest === "/" ? "" : `/${MASK}`}`;
};

const mask = (value: unknown, key: string): unknown => {
  if (key === "sha256" || key === "opsToken") {
    return MASK;
  }
  if (typeof value === "string") {
    // Text that is not a URL may be a credential in the wrong place.
    return URL_OPTIONS.has(key) && !URL_FORM.test(value) ? MASK : maskUrl(value);
  }
  if (Array.isArray(value)) {
    return value.map((item: unknown) => mask(item, key));
  }
  if (typeof value !== "object" || value === null) {
    return value;
  }
  const isHidden = key === "headers";
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, isHidden ? MASK : mask(item, name)]));
};

/** Formats the configuration as JSON without secrets, for the ops port. */
export const formatMasked = (config: Config): string => JSON.stringify(mask(config, ""), null, 2);
