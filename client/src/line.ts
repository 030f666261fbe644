// Lines of plots: their names and units, and which there are.

import type { Values } from './values';
import type { ClipData, Model } from './wire';

export interface Line {
  key: string; // of|what
  label: string;
  unit: string;
}

export const keyOf = (of: string, what: string): string => `${of}|${what}`;

/** Values for people: angles in degrees. */
export const scaleOf = (unit: string): [number, string] =>
  unit === 'rad'
    ? [180 / Math.PI, '°']
    : unit === 'rad/s'
      ? [180 / Math.PI, '°/s']
      : unit === 'm'
        ? [1000, 'mm']
        : [1, unit];

/** What a line shows, with its unit. */
export const labelled = (line: Line): string => {
  const [, unit] = scaleOf(line.unit);
  return unit && unit !== '1' ? `${line.label} [${unit}]` : line.label;
};

/** The lines that can be plotted: those of a clip, or what a drag shows live. */
export function available(model: Model | null, clip: ClipData | null, values: Values, isLive: boolean): Line[] {
  const found: Line[] = [];
  const add = (of: string, what: string, unit: string) =>
    found.push({ key: keyOf(of, what), label: what === 'rate' ? `${of} velocity` : `${of} ${what}`, unit });
  if (clip?.series.length) for (const s of clip.series) add(s.of, s.what, s.unit);
  else {
    for (const c of model?.coordinates ?? []) {
      add(values.nameOf(c), c.kind, c.unit);
      if (isLive) add(values.nameOf(c), 'rate', `${c.unit}/s`);
    }
    if (isLive) {
      add('hand', 'force', 'N');
      add('energy', 'total', 'J');
    }
  }
  return found;
}

/** The first line that is not a driver's own coordinate: what follows is of more interest. */
export function firstLine(options: Line[], model: Model | null): Line | undefined {
  const driven = new Set(
    (model?.drivers ?? []).flatMap((d) => ['angle', 'displacement', 'rate'].map((what) => keyOf(d.of, what))),
  );
  return options.find((option) => !driven.has(option.key));
}
