/** An axis from its first tick to its last one. */
export interface Axis {
  readonly scale: "linear" | "log";
  readonly ticks: readonly number[];
  readonly format: (value: number) => string;
  /** Quantity and unit; undefined if the ticks say it. */
  readonly title: string | undefined;
}

export interface ChartLine {
  readonly color: string;
  readonly points: readonly (readonly [x: number, y: number])[];
  /** Draws a circle at each point, for measured values. */
  readonly dots: boolean;
  /** Shown in the corner of the chart. */
  readonly name?: string;
}

export interface Chart {
  readonly width: number;
  readonly height: number;
  readonly x: Axis;
  readonly y: Axis;
  readonly lines: readonly ChartLine[];
}

export const COLORS = ["#2f7fb8", "#2c8a5b", "#c2473d", "#a76a10", "#7a5bb5", "#2a9d9d", "#b8508f", "#68727f"];

const MARGIN = { right: 22, top: 10, bottom: 20 };
/** The largest width of a character of a label. */
const LABEL_WIDTH = 6;
const TITLE_HEIGHT = 16;
const GRID = "#e3e6eb";
const TEXT = "#5a6470";

const escaped = (text: string): string => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");

/** Steps of 1, 2 or 5 times a power of ten, from 0 to the maximum or a little more. */
export const linearTicks = (max: number, count = 4): readonly number[] => {
  const least = (max || 1) / count;
  const power = 10 ** Math.floor(Math.log10(least));
  const step = ([1, 2, 5, 10].find((factor) => factor * power >= least * (1 - 1e-9)) ?? 10) * power;
  return Array.from({ length: Math.ceil((max || 1) / step - 1e-9) + 1 }, (_, index) => index * step);
};

/** Returns the function from a value to its share of the axis, 0 to 1. */
const shareOn = ({ scale, ticks }: Axis): ((value: number) => number) => {
  const of = scale === "log" ? Math.log10 : (value: number) => value;
  const first = of(ticks[0] ?? 0);
  const span = of(ticks.at(-1) ?? 1) - first || 1;
  return (value) => (of(value) - first) / span;
};

/** The space on the left of the value axis, for its labels and its title. */
const leftOf = ({ ticks, format, title }: Axis): number =>
  Math.max(...ticks.map((tick) => format(tick).length)) * LABEL_WIDTH + (title === undefined ? 8 : 8 + TITLE_HEIGHT);

const textAt = (x: number, y: number, text: string, attributes: string): string =>
  `<text x="${x.toFixed(1)}" y="${y.toFixed(1)}" ${attributes}>${escaped(text)}</text>`;

const drawAxes = ({ width, height, x, y }: Chart, atX: (value: number) => number, atY: (value: number) => number) => {
  const bottom = atY(y.ticks[0] ?? 0);
  const left = leftOf(y);
  const grid = `stroke="${GRID}" stroke-width="1"`;
  return [
    ...y.ticks.map((tick) => {
      const line = `<line x1="${left}" x2="${width - MARGIN.right}" y1="${atY(tick).toFixed(1)}" y2="${atY(tick).toFixed(1)}" ${grid}/>`;
      return line + textAt(left - 5, atY(tick) + 3.5, y.format(tick), 'text-anchor="end"');
    }),
    ...x.ticks.map((tick) => {
      const line = `<line x1="${atX(tick).toFixed(1)}" x2="${atX(tick).toFixed(1)}" y1="${MARGIN.top}" y2="${bottom.toFixed(1)}" ${grid}/>`;
      return line + textAt(atX(tick), bottom + 14, x.format(tick), 'text-anchor="middle"');
    }),
    ...(x.title === undefined ? [] : [textAt(width / 2, height - 4, x.title, 'text-anchor="middle"')]),
    ...(y.title === undefined
      ? []
      : [
          textAt(
            0,
            0,
            y.title,
            `text-anchor="middle" transform="translate(11 ${(height / 2).toFixed(1)}) rotate(-90)"`,
          ),
        ]),
  ];
};

const drawLine = (
  { color, points, dots }: ChartLine,
  at: (point: readonly [number, number]) => readonly [number, number],
) => {
  const places = points.map(at).map(([x, y]) => `${x.toFixed(1)},${y.toFixed(1)}`);
  const line = `<polyline points="${places.join(" ")}" fill="none" stroke="${color}" stroke-width="1.5"/>`;
  const circles = dots
    ? points.map(at).map(([x, y]) => `<circle cx="${x.toFixed(1)}" cy="${y.toFixed(1)}" r="3" fill="${color}"/>`)
    : [];
  return [line, ...circles].join("");
};

/** Draws lines over axes with ticks, as SVG. Points outside the ticks are drawn outside the axes. */
export const drawChart = (chart: Chart): string => {
  const { width, height, x, y, lines } = chart;
  const left = leftOf(y);
  const bottom = height - MARGIN.bottom - (x.title === undefined ? 0 : TITLE_HEIGHT);
  const shareX = shareOn(x);
  const shareY = shareOn(y);
  const atX = (value: number): number => left + shareX(value) * (width - MARGIN.right - left);
  const atY = (value: number): number => bottom - shareY(value) * (bottom - MARGIN.top);
  const drawn = [
    ...drawAxes(chart, atX, atY),
    ...lines.map((line) => drawLine(line, ([px, py]) => [atX(px), atY(py)])),
    ...lines.flatMap(({ name, color }, index) =>
      name === undefined ? [] : [textAt(left + 10, MARGIN.top + 14 * (index + 1), name, `fill="${color}"`)],
    ),
  ];
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" font-family="system-ui, sans-serif" font-size="10" fill="${TEXT}">
${drawn.join("\n")}
</svg>`;
};
