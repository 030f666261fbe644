// Drivers: a slider and a field for each.

import { value as coordinateValue, fixed } from './coordinates';
import { h } from './dom';
import type { CoordinateData, Driver } from './wire';
import { shownIn } from './words';

/** Shift the ends of a slider, so that a value outside is not shown at its end. */
function reach(range: HTMLInputElement, value: number): void {
  const [lower, upper] = [Number(range.min), Number(range.max)];
  const shift = Math.max(0, value - upper) - Math.max(0, lower - value);
  if (!shift) return;
  range.min = String(lower + shift);
  range.max = String(upper + shift);
}

export class Drivers {
  readonly node = h('section', { id: 'drivers', hidden: true });

  constructor(private readonly drive: (driver: string, value: number) => void) {}

  show(drivers: Driver[]): void {
    this.node.hidden = !drivers.length;
    if (this.node.contains(document.activeElement) && document.activeElement instanceof HTMLInputElement) {
      for (const driver of drivers) this.update(driver); // the user holds a slider: keep the elements
      return;
    }
    this.node.replaceChildren(
      h('h2', {}, drivers.length === 1 ? 'Driver' : 'Drivers'),
      ...drivers.map((driver) => this.row(driver)),
    );
  }

  private row(driver: Driver): HTMLElement {
    const [scale, unit] = shownIn(driver.unit);
    const send = (text: string) => {
      const value = Number(text) / scale;
      if (text !== '' && Number.isFinite(value)) this.drive(driver.name, value);
    };
    const range = h('input', {
      type: 'range',
      min: driver.lower * scale,
      max: driver.upper * scale,
      step: 'any',
      value: driver.value * scale,
      'data-driver': driver.name,
      'data-asks': 'drive',
      'aria-label': `${driver.name} in ${unit}`,
      input: () => {
        field.value = Number(range.value).toFixed(2);
        send(range.value);
      },
    });
    const field = h('input', {
      type: 'number',
      step: 'any',
      value: fixed(driver.value * scale),
      'data-driver-value': driver.name,
      'data-asks': 'drive',
      'aria-label': `${driver.name} in ${unit}`,
      change: () => {
        range.value = field.value;
        send(field.value);
      },
    });
    const of = !driver.of || driver.of === driver.name ? '' : `drives ${driver.of}`;
    return h(
      'div',
      { class: 'driver' },
      h('span', {}, driver.name, ' ', h('span', { class: 'hint' }, of)),
      h('label', { class: 'field' }, field, unit),
      range,
    );
  }

  /** Show the values in the poses that are drawn; whole turns are those that are recorded, or of the value before. */
  follow(drivers: Driver[], poses: Float32Array, recorded: (c: CoordinateData) => number | undefined): void {
    for (const driver of drivers) {
      driver.value = coordinateValue(driver.coordinate, poses, recorded(driver.coordinate) ?? driver.value);
      this.update(driver);
    }
  }

  /** A new value, unless the user is changing it. */
  update(driver: Driver): void {
    const [scale] = shownIn(driver.unit);
    for (const [key, value] of [
      ['data-driver', driver.value * scale],
      ['data-driver-value', fixed(driver.value * scale)],
    ]) {
      const element = this.node.querySelector<HTMLInputElement>(`[${key}=${JSON.stringify(driver.name)}]`);
      if (!element || element === document.activeElement) continue;
      if (element.type === 'range') reach(element, Number(value));
      element.value = String(value);
    }
  }
}
