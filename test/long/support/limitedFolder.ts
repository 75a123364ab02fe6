import { spawnSync } from "node:child_process";
import { mkdir, open, rm } from "node:fs/promises";
import { join } from "node:path";

/** The whole room. The database of a folder begins with 64 KiB. */
const ROOM = "4m";
const BLOCK_BYTES = 4_096;

const IN_NAMESPACE = ["unshare", "--user", "--map-root-user", "--mount"];
/** Mounts a small folder, and becomes the command that follows. Only this process sees the mount, which ends with it. */
const MOUNT = `mount -t tmpfs -o size=${ROOM} tmpfs "$0" && exec "$@"`;

/** Whether this user may mount a folder that only one process sees. */
export const canLimitFolders = (): boolean => {
  const [command = "", ...args] = IN_NAMESPACE;
  return spawnSync(command, [...args, "mount", "-t", "tmpfs", "tmpfs", "/mnt"]).status === 0;
};

/** Returns a launcher for a process that sees a small disk at this path. */
export const limitedFolder = async (path: string): Promise<readonly string[]> => {
  await mkdir(path, { recursive: true });
  return [...IN_NAMESPACE, "sh", "-c", MOUNT, path];
};

/** Writes a file to the small disk of a process until it is full. Returns the function that removes it. */
export const fillFolder = async (pid: number, path: string): Promise<() => Promise<void>> => {
  const file = join(`/proc/${pid}/root`, path, "filler");
  const handle = await open(file, "w");
  try {
    for (;;) {
      await handle.write(Buffer.alloc(BLOCK_BYTES));
    }
  } catch (error) {
    if (Object(error).code !== "ENOSPC") {
      throw error;
    }
  } finally {
    await handle.close();
  }
  return () => rm(file);
};
