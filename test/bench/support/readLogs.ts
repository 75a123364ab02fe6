import { Agent, request } from "undici";

const agent = new Agent({ connections: 8, bodyTimeout: 0, headersTimeout: 0 });

export interface Read {
  readonly bytes: number;
  readonly seconds: number;
  readonly firstByteSeconds: number;
}

const quantity = (value: number): string => `0x${value.toString(16)}`;

/** Requests the logs of a range and counts the bytes. `onChunk` gets each chunk, and can slow the reader down. */
export const readLogs = async (
  port: number,
  from: number,
  to: number,
  onChunk: (chunk: Buffer) => Promise<void> | void = () => {},
  clientId = "bench",
): Promise<Read> => {
  const start = performance.now();
  const { body } = await request(`http://127.0.0.1:${port}/`, {
    method: "POST",
    body: JSON.stringify({ fromBlock: quantity(from), toBlock: quantity(to) }),
    headers: { "x-caller": clientId },
    dispatcher: agent,
  });
  const firstByteSeconds = (performance.now() - start) / 1000;
  let bytes = 0;
  for await (const chunk of body) {
    bytes += chunk.length;
    await onChunk(chunk);
  }
  return { bytes, seconds: (performance.now() - start) / 1000, firstByteSeconds };
};

export const getText = async (port: number, path: string): Promise<string> => {
  const { body } = await request(`http://127.0.0.1:${port}${path}`, { dispatcher: agent });
  return body.text();
};

export const closeReaders = (): Promise<void> => agent.close();
