import { Duplex } from "node:stream";

/** A connection inside the process counts as one of a program on this machine. */
const LOCAL_ADDRESS = "127.0.0.1";

/** One side of a connection inside the process, with what an HTTP server uses of a socket. */
export class LocalSocket extends Duplex {
  readonly remoteAddress = LOCAL_ADDRESS;
  #peer: LocalSocket | undefined;
  /** Continues the write of the peer whose chunk is not read yet. */
  #continuePeer: (() => void) | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(peer?: LocalSocket) {
    super();
    this.#peer = peer;
    if (peer !== undefined) {
      peer.#peer = this;
    }
  }

  /** Emits `timeout` after this time without traffic. 0: never. */
  setTimeout(timeoutMs: number): this {
    clearTimeout(this.#timer);
    this.#timer = timeoutMs === 0 ? undefined : setTimeout(() => this.emit("timeout"), timeoutMs).unref();
    return this;
  }

  override _read(): void {
    this.#timer?.refresh();
    const next = this.#continuePeer;
    this.#continuePeer = undefined;
    next?.();
  }

  override _write(chunk: Buffer, _: BufferEncoding, done: () => void): void {
    this.#timer?.refresh();
    const peer = this.#peer;
    if (peer === undefined || peer.destroyed || chunk.length === 0) {
      done();
      return;
    }
    peer.#continuePeer = () => {
      this.#timer?.refresh();
      done();
    };
    peer.push(chunk);
  }

  override _final(done: () => void): void {
    this.#peer?.push(null);
    done();
  }

  /** The other side closes too, as if the connection was reset. */
  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    clearTimeout(this.#timer);
    process.nextTick(() => this.#peer?.destroy());
    done(error);
  }
}

/** Creates both sides of a connection inside the process. Bytes wait in one side until the other side reads them. */
export const createLocalSockets = (): { readonly client: LocalSocket; readonly server: LocalSocket } => {
  const client = new LocalSocket();
  return { client, server: new LocalSocket(client) };
};
