import { formatAct, formatLine, formatScreen, formatTitle, formatTry, type Shown, type ShownAct } from "./screen.ts";
import type { Tried } from "./tries.ts";

/** Where the demo shows what happens. */
export interface Terminal {
  begin(shown: Shown): void;
  show(shown: Shown): void;
  act(act: ShownAct): void;
  tries(tries: readonly Tried[]): void;
  /** Shows the last state, and restores the terminal. */
  end(shown: Shown): void;
}

/** The time between two lines. */
const PLAIN_SECONDS = 5;
/** Other buffer, hidden cursor. */
const ENTER = "\x1b[?1049h\x1b[?25l";
const LEAVE = "\x1b[?25h\x1b[?1049l";
const HOME = "\x1b[H";
const END_OF_LINE = "\x1b[K";
const END_OF_SCREEN = "\x1b[J";
const DEFAULT_ROWS = 40;
const DEFAULT_COLUMNS = 100;

type Write = (text: string) => unknown;

/** Prints a line from time to time, and each event. */
export const createPlainTerminal = (write: Write): Terminal => {
  const say = (...lines: readonly string[]): void => void write(`${lines.join("\n")}\n`);
  let nextSeconds = 0;
  return {
    begin: (shown) => say(formatTitle(shown), "after 20 s a node is killed, forebay restarts, and logs are read", ""),
    show: (shown) => {
      if (shown.seconds >= nextSeconds) {
        nextSeconds = shown.seconds + PLAIN_SECONDS;
        say(formatLine(shown));
      }
    },
    act: (act) => say(formatAct(act)),
    tries: (tries) => say("", ...tries.flatMap(formatTry), "", "Ctrl-C ends everything."),
    end: () => undefined,
  };
};

/** Draws one screen again and again. */
export const createScreenTerminal = (output: {
  write: Write;
  readonly rows?: number;
  readonly columns?: number;
}): Terminal => {
  const lines = (shown: Shown) => formatScreen(shown, output.rows ?? DEFAULT_ROWS, output.columns ?? DEFAULT_COLUMNS);
  let isOpen = false;
  const leave = (): void => {
    if (isOpen) {
      isOpen = false;
      output.write(LEAVE);
    }
  };
  const show = (shown: Shown): void => {
    if (isOpen) {
      const text = lines(shown).join(`${END_OF_LINE}\n`);
      output.write(`${HOME}${text}${END_OF_LINE}${END_OF_SCREEN}`);
    }
  };
  return {
    begin: (shown) => {
      isOpen = true;
      process.once("exit", leave);
      output.write(ENTER);
      show(shown);
    },
    show,
    act: () => undefined,
    tries: () => undefined,
    end: (shown) => {
      leave();
      output.write(`${lines(shown).slice(0, -2).join("\n")}\n\n`);
    },
  };
};
