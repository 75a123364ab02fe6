import { type IncomingHttpHeaders, request } from "node:http";

export interface SingleAnswer {
  readonly result: unknown;
  readonly headers: IncomingHttpHeaders;
}

/** Sends one call over a connection of its own. Rejects if there is no result. */
export const answerOverNewConnection = async (
  url: string,
  method: string,
  params: readonly unknown[] = [],
): Promise<SingleAnswer> => {
  const { promise, resolve, reject } = Promise.withResolvers<{
    readonly text: string;
    readonly headers: IncomingHttpHeaders;
  }>();
  const headers = { "content-type": "application/json" };
  const sent = request(url, { agent: false, method: "POST", headers }, async (response) => {
    const chunks: Buffer[] = await response.toArray();
    resolve({ text: Buffer.concat(chunks).toString(), headers: response.headers });
  });
  sent.on("error", reject);
  sent.end(JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }));
  const { text, headers: received } = await promise;
  const { result, error } = JSON.parse(text);
  if (error !== undefined) {
    throw new Error(`${method}: ${text}`);
  }
  return { result, headers: received };
};

/** Sends one call over a connection of its own. Returns the result. Rejects for any other response. */
export const callOverNewConnection = async (
  url: string,
  method: string,
  params: readonly unknown[] = [],
): Promise<unknown> => (await answerOverNewConnection(url, method, params)).result;
