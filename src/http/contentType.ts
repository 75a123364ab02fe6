const ACCEPTED = new Set(["application/json", "application/json-rpc", "application/jsonrequest"]);

/** Whether a Content-Type is JSON. Parameters are ignored, because JSON is always UTF-8 (RFC 8259, section 8.1). */
export const isJsonContentType = (value: string | undefined): boolean => {
  if (value === "application/json") {
    return true;
  }
  const [type = ""] = (value ?? "").split(";");
  return ACCEPTED.has(type.trim().toLowerCase());
};
