import { parseArgs } from "node:util";

export const DEMO_HELP = `npm run demo -- [options]: two real nodes, a sequencer feed, wallets, and forebay in front of them

  --port N       port of forebay, default 8545; 0 for any free port. The ops port is 1,000 above.
  --rate N       transactions a second, default 3
  --seconds N    end after this time; default: on Ctrl-C
  --plain        lines instead of a screen; default if the output is no terminal
  --help
`;

export interface DemoOptions {
  readonly port: number;
  /** Transactions a second. */
  readonly rate: number;
  readonly seconds: number | undefined;
  readonly plain: boolean;
}

const OPTIONS = {
  port: { type: "string" },
  rate: { type: "string" },
  seconds: { type: "string" },
  plain: { type: "boolean" },
  help: { type: "boolean", short: "h" },
} as const;

const numberOf = (name: string, text: string | undefined): number | undefined => {
  if (text === undefined) {
    return undefined;
  }
  if (!/^\d+$/.test(text)) {
    throw new Error(`--${name}: "${text}" is not a number`);
  }
  return Number(text);
};

/** Parses the arguments. Returns "help" if that was requested. Throws an error that names the flag. */
export const parseDemoOptions = (args: readonly string[]): DemoOptions | "help" => {
  const { values } = parseArgs({ args: [...args], options: OPTIONS });
  if (values.help === true) {
    return "help";
  }
  return {
    port: numberOf("port", values.port) ?? 8_545,
    rate: numberOf("rate", values.rate) ?? 3,
    seconds: numberOf("seconds", values.seconds),
    plain: values.plain ?? false,
  };
};
