import { request } from "node:http";

/** Sends one call over a connection of its own. Returns the result. Rejects for any other response. */
export const callOverNewConnection = async (
  url: string,
  method: string,
  params: readonly unknown[] = [],
): Promise<unknown> => {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const headers = { "content-type": "application/json" };
  const call = request(url, { agent: false, method: "POST", headers }, async (response) => {
    const chunks: Buffer[] = await response.toArray();
    resolve(Buffer.concat(chunks).toString());
  });
  call.on("error", reject);
  call.end(JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }));
  const text = await promise;
  const { result, error } = JSON.parse(text);
  if (error !== undefined) {
    throw new Error(`${method}: ${text}`);
  }
  return result;
};
