const ACCEPTED = new Set(["application/json", "application/json-rpc", "application/jsonrequest"]);

/** Any parameters are accepted: JSON is UTF-8 whatever they say (RFC 8259 section 8.1). */
export const isJsonContentType = (value: string | undefined): boolean => {
  if (value === "application/json") return true;
  const [type = ""] = (value ?? "").split(";");
  return ACCEPTED.has(type.trim().toLowerCase());
};
