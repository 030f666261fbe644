// Drivers: a slider and a field for each.

import { fixed } from './coordinates';
import { h } from './dom';
import type { Driver } from './wire';
import { shownIn } from './words';

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

  /** A new value, unless the user is changing it. */
  update(driver: Driver): void {
    const [scale] = shownIn(driver.unit);
    for (const [key, value] of [
      ['data-driver', driver.value * scale],
      ['data-driver-value', fixed(driver.value * scale)],
    ]) {
      const element = this.node.querySelector<HTMLInputElement>(`[${key}=${JSON.stringify(driver.name)}]`);
      if (element && element !== document.activeElement) element.value = String(value);
    }
  }
}
