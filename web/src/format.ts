// Figures as people read them, and as they write them.

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];

/** Bytes in binary units, with three digits. */
export function bytes(count: number): string {
  let value = count;
  let unit = 0;
  while (value >= 1024 && unit < UNITS.length - 1) {
    value /= 1024;
    unit += 1;
  }
  const digits = unit === 0 || value >= 100 || Number.isInteger(value) ? 0 : value >= 10 ? 1 : 2;
  return `${value.toFixed(digits)} ${UNITS[unit]}`;
}

/** A size as it is written: `8G`, `1.5 TiB`, `4096`. Nothing when it is none. */
export function parseBytes(text: string): number | undefined {
  const match = /^\s*(\d+(?:\.\d+)?)\s*([kmgtpe]?)(?:i?b)?\s*$/i.exec(text);
  if (!match) return undefined;
  const power = " kmgtpe".indexOf((match[2] || " ").toLowerCase());
  const value = Number(match[1]) * 1024 ** power;
  return Number.isSafeInteger(Math.round(value)) ? Math.round(value) : undefined;
}

/** A number with a letter for thousands. */
export function count(value: number): string {
  if (value < 10 && value % 1 !== 0) return value.toFixed(1);
  if (value < 10_000) return Math.round(value).toLocaleString("en");
  const [scaled, letter] = value < 1e6 ? [value / 1e3, "k"] : [value / 1e6, "M"];
  return `${scaled.toFixed(scaled < 100 ? 1 : 0)}${letter}`;
}

/** A number with a noun that takes a plural s. */
export function many(number: number, name: string): string {
  return `${number.toLocaleString("en")} ${name}${number === 1 ? "" : "s"}`;
}

/** A time in milliseconds. */
export function milliseconds(value: number): string {
  if (value === 0) return "–";
  return value < 1 ? `${Math.round(value * 1000)} µs` : `${value.toFixed(value < 10 ? 2 : 1)} ms`;
}

/** Seconds as a span: its biggest unit and the next. */
export function span(seconds: number): string {
  const units: [number, string][] = [
    [86_400, "d"],
    [3600, "h"],
    [60, "min"],
    [1, "s"],
  ];
  const first = units.findIndex(([size]) => seconds >= size);
  if (first < 0) return "0 s";
  const [size, name] = units[first]!;
  const whole = Math.floor(seconds / size);
  const next = units[first + 1];
  const rest = next && whole < 10 ? Math.floor((seconds % size) / next[0]) : 0;
  return next && rest > 0 ? `${whole} ${name} ${rest} ${next[1]}` : `${whole} ${name}`;
}

/** A span as it is written: `15m`, `12h`, `30d`, in seconds. Nothing when it is none. */
export function parseSpan(text: string): number | undefined {
  const match = /^\s*(\d+)\s*([smhd])\s*$/.exec(text);
  if (!match) return undefined;
  return Number(match[1]) * { s: 1, m: 60, h: 3600, d: 86_400 }[match[2] as "s" | "m" | "h" | "d"];
}

/** Seconds since 1970 as a local time. */
export function time(seconds: number): string {
  return new Date(seconds * 1000).toLocaleString("sv").slice(0, 16);
}

/** Seconds since 1970 as a local time of day. */
export function clock(seconds: number): string {
  return new Date(seconds * 1000).toLocaleString("sv").slice(11, 19);
}

/** A part of a whole in per cent, without crying wolf: 100 only when it is all. */
export function percent(part: number, whole: number): number {
  if (whole <= 0) return 0;
  const value = (part / whole) * 100;
  return value < 100 ? Math.min(value, 99.9) : 100;
}
