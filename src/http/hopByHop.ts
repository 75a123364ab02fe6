import type { IncomingHttpHeaders } from "node:http";

/** Headers for one connection only (RFC 9110, section 7.6.1; RFC 2616, section 13.5.1). */
const HOP_BY_HOP = ["connection", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade"];

/** Removes hop-by-hop headers, `Proxy-*` headers, and the headers that `Connection` names. */
export const removeHopByHop = (headers: IncomingHttpHeaders): void => {
  const named = (headers.connection ?? "").split(",").map((name) => name.trim().toLowerCase());
  for (const name of [...HOP_BY_HOP, ...named]) {
    delete headers[name];
  }
  for (const name of Object.keys(headers)) {
    if (name.startsWith("proxy-")) {
      delete headers[name];
    }
  }
};

/** Whether a path has a segment `..` after decoding. A backslash counts as a slash, because some servers read it so. */
export const leavesBase = (target: string): boolean => {
  const [path = ""] = target.split(/[?#]/, 1);
  let decoded: string;
  try {
    decoded = decodeURIComponent(path);
  } catch {
    // A target may decode such a path in its own way.
    return true;
  }
  // Some servers ignore the parameters of a segment: `..;a=b`.
  return decoded.split(/[\\/]/).some((segment) => segment.split(";", 1)[0] === "..");
};
