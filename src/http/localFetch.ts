import { once } from "node:events";
import type { ClientRequest, IncomingHttpHeaders, IncomingMessage } from "node:http";
import { type Duplex, Readable } from "node:stream";
import type { ReadableStream as WebStream } from "node:stream/web";
import { removeHopByHop } from "./passThroughHandler.ts";

/** An import of node:http would also load Node's own fetch and WebSocket: 11 MB and 30 ms of each start. */
const { request: sendRequest } = process.getBuiltinModule("node:http");

/** Statuses without a body (Fetch standard, "null body status"). */
const WITHOUT_BODY: ReadonlySet<number> = new Set([204, 205, 304]);

const headersOf = (request: Request): IncomingHttpHeaders => {
  const headers: IncomingHttpHeaders = { host: new URL(request.url).host, ...Object.fromEntries(request.headers) };
  removeHopByHop(headers);
  // Nobody waits for the interim response.
  delete headers.expect;
  return headers;
};

const toResponse = (message: IncomingMessage, { method }: Request): Response => {
  const { statusCode: status = 500, statusMessage: statusText = "", headersDistinct } = message;
  const headers = new Headers();
  for (const [name, values = []] of Object.entries(headersDistinct)) {
    for (const value of values) {
      headers.append(name, value);
    }
  }
  for (const name of ["connection", "keep-alive", "transfer-encoding"]) {
    headers.delete(name);
  }
  if (method === "HEAD" || WITHOUT_BODY.has(status)) {
    message.resume();
    return new Response(null, { status, statusText, headers });
  }
  return new Response(Readable.toWeb(message) as ReadableStream<Uint8Array<ArrayBuffer>>, {
    status,
    statusText,
    headers,
  });
};

/** Sends a body until the server has it, or has ended the connection. An error of the body ends the request. */
const sendBody = async (body: ReadableStream, sent: ClientRequest): Promise<void> => {
  const closed = new AbortController();
  const { signal } = closed;
  sent.once("close", () => closed.abort());
  // A body that is shorter than announced would let the server wait.
  Object.assign(sent, { strictContentLength: true });
  try {
    for await (const chunk of Readable.fromWeb(body as WebStream, { signal })) {
      if (!sent.write(chunk)) {
        await once(sent, "drain", { signal });
      }
    }
    sent.end();
  } catch (error) {
    sent.destroy(error instanceof Error ? error : new Error(String(error)));
  }
};

/**
 * Sends a request over a connection inside the process, and returns the response when its headers are known.
 * Rejects if the request is aborted, or if the connection breaks before.
 */
export const fetchLocally = async (request: Request, connect: () => Duplex): Promise<Response> => {
  const { method, signal, body } = request;
  const { pathname, search } = new URL(request.url);
  const sent = sendRequest({
    ...{ method, path: pathname + search, headers: headersOf(request), signal },
    createConnection: () => connect(),
  });
  const received = new Promise<Response>((resolve, reject) => {
    sent.once("response", (message) => resolve(toResponse(message, request)));
    sent.on("error", (error) => reject(signal.aborted ? signal.reason : error));
  });
  if (body === null) {
    sent.end();
  } else {
    void sendBody(body, sent);
  }
  return received;
};
