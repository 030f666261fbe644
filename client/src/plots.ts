// Plots over time: of a clip with a cursor at the time shown, or of the last seconds of a drag.

import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import { widened } from './axis';
import { keyOf, type Line, scaleOf } from './line';
import type { ClipData } from './wire';

const COLORS = ['#2a78d6', '#e0703a', '#2a9d6f', '#8a63c9', '#c29a00', '#c2417c'];
export const MOST_LINES = COLORS.length;
const LIVE_SECONDS = 12;
const LIVE_POINTS = 1200;

export class Plots {
  private plot: uPlot | null = null;
  private lines: Line[] = [];
  private clip: ClipData | null = null;
  private times: number[] = [];
  private live = new Map<string, number[]>();
  private stale = false;
  private start = 0;
  time = 0;

  constructor(private readonly holder: HTMLElement) {
    new ResizeObserver(() => this.plot?.setSize({ width: holder.clientWidth, height: 168 })).observe(holder);
  }

  colorOf(index: number): string {
    return COLORS[index % COLORS.length];
  }

  show(lines: Line[], clip: ClipData | null): void {
    this.lines = lines;
    this.clip = clip;
    this.times = [];
    this.live = new Map(lines.map((line) => [line.key, []]));
    this.plot?.destroy();
    this.plot = null;
    this.holder.replaceChildren();
    if (!lines.length) return;
    const style = getComputedStyle(document.documentElement);
    const ink = style.getPropertyValue('--quiet').trim();
    const rule = style.getPropertyValue('--rule').trim();
    const units = [...new Set(lines.map((line) => scaleOf(line.unit)[1]))];
    const axis = { stroke: ink, grid: { stroke: rule, width: 1 }, ticks: { show: false }, font: '11px system-ui' };
    this.plot = new uPlot(
      {
        width: this.holder.clientWidth,
        height: 168,
        legend: { show: false },
        pxAlign: 0,
        cursor: { y: false, points: { size: 6 }, drag: { x: false, y: false } },
        scales: {
          x: { time: false, ...(clip ? {} : { range: () => this.span() }) },
          ...Object.fromEntries(
            units.map((unit) => [unit, { range: (_: uPlot, a: number, b: number) => widened(a, b) }]),
          ),
        },
        axes: [
          { ...axis, size: 26, gap: 2 },
          ...units.slice(0, 2).map((unit, k) => ({
            ...axis,
            scale: unit,
            side: k ? (1 as const) : (3 as const),
            size: 46,
            gap: 2,
            grid: { ...axis.grid, show: !k },
            values: (_: uPlot, ticks: number[]) => ticks.map((t) => `${Number(t.toPrecision(6))}`),
          })),
        ],
        series: [
          {},
          ...lines.map((line, k) => ({
            stroke: this.colorOf(k),
            width: 1.6,
            scale: scaleOf(line.unit)[1],
            points: { show: false },
          })),
        ],
        hooks: { draw: [(plot) => this.drawCursor(plot)] },
      },
      this.data(),
      this.holder,
    );
  }

  /** Of a drag, the last seconds. */
  private span(): [number, number] {
    const last = this.times.at(-1) ?? 0;
    return last < LIVE_SECONDS ? [0, LIVE_SECONDS] : [last - LIVE_SECONDS, last];
  }

  private data(): uPlot.AlignedData {
    if (this.clip) {
      const values = this.lines.map((line) => {
        const found = this.clip!.series.find((s) => keyOf(s.of, s.what) === line.key);
        const [scale] = scaleOf(line.unit);
        return found ? Array.from(found.values, (v) => v * scale) : this.clip!.times.map(() => null);
      });
      return [this.clip.times, ...values] as uPlot.AlignedData;
    }
    return [this.times, ...this.lines.map((line) => this.live.get(line.key)!)] as uPlot.AlignedData;
  }

  private drawCursor(plot: uPlot): void {
    if (!this.clip) return;
    const x = plot.valToPos(this.time, 'x', true);
    const { ctx, bbox } = plot;
    ctx.save();
    ctx.strokeStyle = '#f2711c';
    ctx.lineWidth = devicePixelRatio;
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
    ctx.restore();
  }

  /** The time shown by a clip. */
  seek(time: number): void {
    this.time = time;
    this.stale = true;
  }

  /** Values at a moment of a drag [s]. */
  push(now: number, value: (key: string) => number | undefined): void {
    if (this.clip || !this.lines.length) return;
    if (!this.times.length) this.start = now;
    now -= this.start;
    this.times.push(now);
    for (const line of this.lines) {
      const found = value(line.key);
      this.live.get(line.key)!.push((found === undefined ? null : found * scaleOf(line.unit)[0]) as number);
    }
    if (this.times.length > LIVE_POINTS || this.times[0] < now - LIVE_SECONDS) {
      this.times.shift();
      for (const values of this.live.values()) values.shift();
    }
    this.stale = true;
  }

  /** Draw what has changed. */
  update(): void {
    if (!this.plot || !this.stale) return;
    this.stale = false;
    if (this.clip) this.plot.redraw(false, false);
    else this.plot.setData(this.data());
  }

  /** How many values each line has; for tests. */
  get sizes(): number[] {
    return this.plot
      ? this.plot.data.slice(1).map((values) => Array.from(values).filter((v) => v !== null).length)
      : [];
  }
}
