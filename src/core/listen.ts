import { once } from "node:events";
import type { Server } from "node:net";

export interface ListenOptions {
  readonly host: string;
  readonly port: number;
  /** Whether other processes may listen on the port too. Linux gives each new connection to one of them. */
  readonly reusePort?: boolean;
  /** The option and the flag that set host and port, for errors. */
  readonly setting: string;
}

const REASONS: Readonly<Record<string, string>> = {
  EADDRINUSE: "another process uses it",
  EACCES: "this user may not use it",
  EADDRNOTAVAIL: "this machine does not have the address",
  ENOTFOUND: "the host name does not resolve",
};

/** Listens on host and port. Rejects with an error that names the reason and the setting. */
export const listen = async (
  server: Server,
  { host, port, reusePort = false, setting }: ListenOptions,
): Promise<void> => {
  if (reusePort && process.platform !== "linux") {
    throw new Error(`cannot listen on ${host}:${port}: server.reusePort needs Linux`);
  }
  server.listen({ port, host, reusePort });
  try {
    await once(server, "listening");
  } catch (error) {
    const code = error instanceof Error && "code" in error ? String(error.code) : "";
    const reason = REASONS[code] ?? String(error);
    throw new Error(`cannot listen on ${host}:${port}: ${reason} (${setting})`, { cause: error });
  }
};
