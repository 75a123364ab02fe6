import { request } from "undici";

/** One JSON-RPC response with its text, for tests that compare bytes. */
export interface RpcAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  readonly body: { readonly result?: unknown; readonly error?: { readonly code: number; readonly message: string } };
}

export const rpc = async (
  url: string,
  method: string,
  params: readonly unknown[] = [],
  headers: Readonly<Record<string, string>> = {},
): Promise<RpcAnswer> => {
  // `fetch` takes four times as long: its bodies are web streams.
  const response = await request(url, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }),
  });
  const text = await response.body.text();
  const answered = new Headers(Object.entries(response.headers).map(([name, value]) => [name, String(value)]));
  return { status: response.statusCode, headers: answered, text, body: text === "" ? {} : JSON.parse(text) };
};

/** Cuts the text of `result` out of an envelope in which it is the last member. */
export const resultText = (text: string): string => {
  const start = text.indexOf('"result":') + '"result":'.length;
  const end = text.endsWith(',"id":1}') ? text.length - ',"id":1}'.length : text.length - 1;
  return text.slice(start, end).trim();
};

/**
 * Reads /metrics on a connection of its own. The server closes an idle one after a few seconds. On a busy machine, a request may be
 * sent on it at that moment, and is reset.
 */
export const scrape = async (opsUrl: string): Promise<string> =>
  (await request(`${opsUrl}/metrics`, { reset: true })).body.text();

/** Reads the value of one metric from /metrics; 0 if it has no series. */
export const metric = async (opsUrl: string, name: string, ...labels: readonly string[]): Promise<number> => {
  const text = await scrape(opsUrl);
  return text
    .split("\n")
    .filter((line) => line.startsWith(name) && labels.every((label) => line.includes(label)))
    .reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(" ") + 1)), 0);
};
