import { once } from "node:events";
import { createServer } from "node:http";

/** A server in front of a node. `answer` maps the body of a request to the text of its response; 502 if it rejects. */
export interface Front {
  readonly url: string;
  close(): Promise<void>;
}

export const startFront = async (answer: (body: string) => Promise<string>): Promise<Front> => {
  const server = createServer(async (incoming, response) => {
    try {
      const chunks: Buffer[] = [];
      for await (const chunk of incoming) {
        chunks.push(chunk);
      }
      const text = await answer(Buffer.concat(chunks).toString());
      response.setHeader("content-type", "application/json").end(text);
    } catch {
      response.writeHead(502).end();
    }
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  const address = server.address();
  return {
    url: `http://127.0.0.1:${typeof address === "object" && address !== null ? address.port : 0}`,
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
};
