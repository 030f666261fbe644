// Degrees of freedom, residual and step time, always in sight; limits and lost contacts in words.

import { h, setText } from './dom';
import { dofText, type FreedomData } from './freedoms';
import type { FrameData } from './wire';

const ROUNDING = 1e-15; // relative: a smaller residual is rounding

/** The largest residual, for people. */
export const residualText = (residual: number): string => {
  if (!Number.isFinite(residual)) return '–';
  return Math.abs(residual) < ROUNDING ? '0' : residual.toExponential(1);
};

export class Status {
  private readonly lamp = h('span', { id: 'lamp', title: 'not connected' });
  private readonly dof = h('span', { id: 'dof' });
  private readonly residual = h('span', { id: 'residual' });
  private readonly step = h('span', { id: 'step' });
  private readonly preparing = h('span', { id: 'preparing', hidden: true });
  private readonly stops = h('span', { id: 'stops', hidden: true });
  readonly node = h(
    'div',
    { id: 'status', class: 'card', role: 'status' },
    this.lamp,
    this.dof,
    this.residual,
    this.step,
    this.preparing,
    this.stops,
  );

  connected(on: boolean): void {
    this.lamp.classList.toggle('on', on);
    this.lamp.title = on ? 'connected' : 'not connected';
  }

  /** What is compiled before it is needed; null at the end. */
  prepare(text: string | null): void {
    setText(this.preparing, text ?? '');
    this.preparing.hidden = !text;
  }

  show(freedoms: FreedomData | null, frame: FrameData | null, stops: string[]): void {
    setText(this.dof, freedoms ? dofText(freedoms) : '–');
    setText(this.residual, `residual ${residualText(frame?.residual ?? Number.NaN)}`);
    setText(this.step, `step ${frame?.milliseconds ? `${frame.milliseconds.toFixed(2)} ms` : '–'}`);
    setText(this.stops, stops.join('; '));
    this.stops.hidden = !stops.length;
  }
}
