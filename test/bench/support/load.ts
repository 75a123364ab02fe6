import { connect, type Socket } from "node:net";

/** The load of one process: fixed requests over raw keep-alive connections, one at a time on each. */
export interface Load {
  readonly port: number;
  readonly path: string;
  /** One more header, such as `x-api-key: KEY`. */
  readonly header?: string | undefined;
  /** Request body. Each `{n}` is replaced by a counter of eight hex digits, so that all bodies have one length. No run repeats another's counts. */
  readonly body: string;
  /** Number of different counts; 2^32 by default. */
  readonly counts?: number | undefined;
  readonly connections: number;
  readonly warmMs: number;
  readonly measureMs: number;
}

export interface LoadResult {
  readonly requests: number;
  readonly seconds: number;
  readonly medianMs: number;
  readonly p99Ms: number;
}

const HEAD_END = "\r\n\r\n";
/** Number of different counts of eight hex digits. */
const COUNTS = 2 ** 32;

const buildRequest = ({ path, header, body, counts = COUNTS }: Load): ((n: number) => string) => {
  const length = Buffer.byteLength(body.replaceAll("{n}", "00000000"));
  const head = `POST ${path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: ${length}${header === undefined ? "" : `\r\n${header}`}${HEAD_END}`;
  if (!body.includes("{n}")) {
    return () => head + body;
  }
  return (n) => head + body.replaceAll("{n}", (n % counts).toString(16).padStart(8, "0"));
};

/** Counts by time: a later run begins above an earlier one of up to 100,000 requests a second. */
const firstCount = (): number => Date.now() * 100;

const LAST_CHUNK = Buffer.from("\r\n0\r\n\r\n");

/** Calls back once for each response. Its end is known from Content-Length or from the last chunk. */
const onResponse = (socket: Socket, done: (status: string) => void): void => {
  let missing = 0;
  let head = "";
  let chunked = false;
  /** The last bytes so far, because the end of a response may be split. */
  let tail = Buffer.alloc(0);
  const isLast = (chunk: Buffer): boolean => {
    tail = Buffer.concat([tail, chunk.subarray(-LAST_CHUNK.length)]).subarray(-LAST_CHUNK.length);
    return tail.equals(LAST_CHUNK);
  };
  socket.on("data", (chunk: Buffer) => {
    if (chunked) {
      missing = isLast(chunk) ? 0 : 1;
    } else if (missing > 0) {
      missing -= chunk.length;
    } else {
      head += chunk.toString("latin1");
      const end = head.indexOf(HEAD_END);
      if (end < 0) {
        return;
      }
      const length = /\r\ncontent-length: (\d+)/i.exec(head)?.[1];
      chunked = length === undefined && /\r\ntransfer-encoding: chunked/i.test(head);
      if (length === undefined && !chunked) {
        throw new Error(`no Content-Length in ${head.slice(0, end)}`);
      }
      if (chunked) {
        missing = isLast(chunk) ? 0 : 1;
      } else {
        missing = end + HEAD_END.length + Number(length) - head.length;
      }
    }
    if (missing > 0) {
      return;
    }
    const status = head.slice(9, 12);
    head = "";
    missing = 0;
    chunked = false;
    done(status);
  });
};

const run = (load: Load): Promise<LoadResult> => {
  const request = buildRequest(load);
  const times: number[] = [];
  const sockets: Socket[] = [];
  let sent = firstCount();
  let measuredFrom = 0;
  return new Promise((resolve, reject) => {
    for (let index = 0; index < load.connections; index++) {
      const socket = connect({ port: load.port, host: "127.0.0.1", noDelay: true });
      let startMs = 0;
      const send = (): void => {
        startMs = performance.now();
        socket.write(request(sent++), "latin1");
      };
      onResponse(socket, (status) => {
        if (status !== "200") {
          return reject(new Error(`status ${status}`));
        }
        if (measuredFrom > 0) {
          times.push(performance.now() - startMs);
        }
        send();
      });
      socket.on("error", reject);
      socket.on("connect", send);
      sockets.push(socket);
    }
    setTimeout(() => {
      measuredFrom = performance.now();
      process.send?.("measuring");
      setTimeout(() => {
        const seconds = (performance.now() - measuredFrom) / 1000;
        for (const socket of sockets) {
          socket.destroy();
        }
        const sorted = Float64Array.from(times).sort();
        const at = (share: number): number => sorted[Math.floor(sorted.length * share)] ?? 0;
        resolve({ requests: sorted.length, seconds, medianMs: at(0.5), p99Ms: at(0.99) });
      }, load.measureMs);
    }, load.warmMs);
  });
};

process.on("message", (load: Load) => {
  run(load).then(
    (result) => process.send?.(result),
    (error: unknown) => {
      console.error(error);
      process.exit(1);
    },
  );
});
process.on("disconnect", () => process.exit());
