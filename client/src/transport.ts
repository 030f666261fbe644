// Time: play, pause, speed, timeline; driven motions and simulations have the same controls.

import { block, h, icon, iconButton } from './dom';
import { Player } from './player';
import type { ClipData } from './wire';

const SPEEDS = [0.1, 0.25, 0.5, 1, 2, 4];
const LONGEST = 600; // s
const NO_MOTION = 'no motion is shown: play one first';

export interface TransportActions {
  /** Compute a motion of the mode for a duration [s]. */
  compute(mode: 'move' | 'simulate', duration: number): void;
  /** Show the pose of the player. */
  shown(player: Player): void;
  /** A motion was started from its beginning. */
  restarted(): void;
  /** The player was closed; back: to the pose before it. */
  closed(back: boolean): void;
  wake(): void;
}

export class Transport {
  player: Player | null = null;
  private mode: 'move' | 'simulate' = 'move';
  private duration = 2;
  private last = 0;
  private readonly playButton = iconButton('play', 'Play (space)', () => this.toggle(), {
    id: 'play',
    'data-asks': true,
  });
  private readonly stopButton = iconButton('stop', 'Back to the pose before', () => this.close(true), { id: 'end' });
  private readonly modes = (['move', 'simulate'] as const).map((mode) =>
    h(
      'button',
      { type: 'button', role: 'radio', id: `mode-${mode}`, 'data-asks': true, click: () => this.setMode(mode) },
      mode === 'move' ? 'Drive' : 'Simulate',
    ),
  );
  private readonly durationField = h('input', {
    id: 'duration',
    type: 'number',
    min: 0.1,
    max: LONGEST,
    step: 0.1,
    value: 2,
    'aria-label': 'Duration in seconds',
    change: () => this.setDuration(Number(this.durationField.value)),
  });
  private readonly scrub = h('input', {
    id: 'scrub',
    type: 'range',
    min: 0,
    max: 1000,
    value: 0,
    'aria-label': 'Time',
    input: () => this.scrubbed(),
  });
  private readonly time = h('span', { id: 'time' });
  private readonly speed = h('select', {
    id: 'speed',
    'aria-label': 'Speed',
    change: () => {
      if (this.player) this.player.speed = Number(this.speed.value);
    },
  });
  readonly node: HTMLElement;

  /** extra: a button at the end; recorded: of a page from disk. */
  constructor(
    private readonly actions: TransportActions,
    recorded: boolean,
    extra: HTMLElement | null,
  ) {
    for (const speed of SPEEDS) this.speed.append(h('option', { value: speed, selected: speed === 1 }, `${speed}×`));
    this.node = h(
      'div',
      { id: 'transport', class: 'card', role: 'toolbar', 'aria-label': 'Time' },
      this.playButton,
      this.stopButton,
      recorded ? null : h('div', { class: 'segments', role: 'radiogroup' }, ...this.modes),
      recorded ? null : h('label', { class: 'field' }, this.durationField, 's'),
      this.scrub,
      this.time,
      this.speed,
      extra,
    );
    this.stopButton.hidden = recorded;
    this.setMode('move');
    this.blockClip(true);
    this.showTime();
  }

  /** Without a motion there is nothing to scrub and nothing to leave. */
  private blockClip(on: boolean): void {
    for (const node of [this.scrub, this.stopButton]) block(node, 'clip', on ? NO_MOTION : null);
  }

  /** For another model: its duration, and whether it has drivers. */
  reset(duration: number, hasDrivers: boolean): void {
    this.close(false);
    this.duration = duration || 2;
    this.durationField.value = String(this.duration);
    this.setMode(hasDrivers ? 'move' : 'simulate');
    block(this.modes[0], 'drivers', hasDrivers ? null : 'it has no driver');
  }

  private setMode(mode: 'move' | 'simulate'): void {
    if (this.mode !== mode) this.close(false);
    this.mode = mode;
    for (const button of this.modes) button.setAttribute('aria-checked', String(button.id === `mode-${mode}`));
  }

  private setDuration(value: number): void {
    if (value > 0 && value <= LONGEST) this.duration = value;
    this.durationField.value = String(this.duration);
    this.close(false);
  }

  toggle(): void {
    const { player } = this;
    if (this.playButton.disabled) return;
    if (!player || player.clip.kind === 'wiggle') {
      this.close(false);
      this.actions.compute(this.mode, this.duration);
      return;
    }
    if (!player.playing && player.time >= player.last) player.seek(player.first);
    player.playing = !player.playing;
    this.last = performance.now();
    if (player.playing) this.actions.restarted();
    this.showTime();
    this.actions.wake();
  }

  start(clip: ClipData): void {
    this.player = new Player(clip);
    this.player.speed = clip.kind === 'wiggle' ? 1 : Number(this.speed.value);
    this.blockClip(false);
    this.last = performance.now();
    this.showTime();
    this.actions.wake();
  }

  /** Let the time pass that has passed; whether a motion plays. */
  advance(now: number): boolean {
    const seconds = Math.min(0.1, Math.max(0, now - this.last) / 1000);
    this.last = now;
    if (!this.player?.playing) return false;
    this.player.advance(seconds);
    this.show();
    return this.player.playing;
  }

  step(by: number): void {
    this.player?.step(by);
    this.show();
  }

  private scrubbed(): void {
    const { player } = this;
    if (!player) return;
    player.playing = false;
    player.seek(player.first + (Number(this.scrub.value) / 1000) * (player.last - player.first));
    this.show();
  }

  private show(): void {
    if (!this.player) return;
    this.showTime();
    this.actions.shown(this.player);
  }

  close(back: boolean): void {
    if (!this.player) return;
    this.player = null;
    this.blockClip(true);
    this.showTime();
    this.actions.closed(back);
  }

  private showTime(): void {
    const { player } = this;
    const playing = Boolean(player?.playing);
    if (this.playButton.dataset.playing !== String(playing)) {
      this.playButton.dataset.playing = String(playing);
      this.playButton.replaceChildren(icon(playing ? 'pause' : 'play'));
    }
    const [past, span] = player ? [player.time - player.first, player.last - player.first] : [0, 0];
    this.time.textContent = player ? `${past.toFixed(2)} / ${span.toFixed(2)} s` : '';
    this.scrub.value = span > 0 ? String((1000 * past) / span) : '0';
  }
}
