// Buttons for the view: what is drawn, from where, dark or light.

import { block, h, icon, iconButton } from './dom';
import { helpDialog } from './help';
import type { Joints } from './joints';
import type { Stage } from './stage';
import { remember, remembered } from './storage';
import { THEMES } from './themes';

export interface ToolActions {
  undo(): void;
  reset(): void;
  showReactions(on: boolean): void;
  /** Colours have changed. */
  themed(): void;
}

/** A button that is on or off. */
export function toggle(
  name: string,
  mark: string,
  label: string,
  get: () => boolean,
  set: (on: boolean) => void,
): HTMLButtonElement {
  const button = iconButton(
    mark,
    label,
    () => {
      set(!get());
      button.setAttribute('aria-pressed', String(get()));
    },
    { id: `toggle-${name}`, 'aria-pressed': String(get()) },
  );
  return button;
}

export class Toolbar {
  readonly node: HTMLElement;
  readonly help = helpDialog();
  private theme: 'light' | 'dark';
  private reactions = false;

  constructor(
    private readonly stage: Stage,
    joints: Joints,
    private readonly actions: ToolActions,
    recorded: boolean,
  ) {
    const wanted = remembered('cardan-theme');
    const dark = wanted ? wanted === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
    this.theme = dark ? 'dark' : 'light';
    const view = (name: string, mark: string, label: string, key: Switch) =>
      toggle(
        name,
        mark,
        label,
        () => stage[key],
        (on) => {
          stage[key] = on;
        },
      );
    const setReactions = (on: boolean) => {
      this.reactions = on;
      actions.showReactions(on);
    };
    const setLabels = (on: boolean) => joints.label(on);
    this.node = h(
      'div',
      { id: 'tools', class: 'card', role: 'toolbar', 'aria-label': 'View' },
      recorded ? null : iconButton('undo', 'Undo (Ctrl+Z)', actions.undo, { id: 'undo', 'data-asks': 'undo' }),
      recorded
        ? null
        : iconButton('reset', 'Back to the first pose (R)', actions.reset, { id: 'reset', 'data-asks': 'reset' }),
      recorded ? null : h('hr'),
      iconButton('fit', 'Show everything (F)', () => stage.fit(), { id: 'fit' }),
      view('ortho', 'box', 'Orthographic view (O)', 'orthographic'),
      view('joints', 'joint', 'Joints and contacts (J)', 'marksShown'),
      toggle('labels', 'tag', 'Names and values of joints (N)', () => joints.areLabelled, setLabels),
      toggle('reactions', 'arrow', 'Forces in the joints, while a motion is shown', () => this.reactions, setReactions),
      view('edges', 'edges', 'Edges', 'edgesShown'),
      view('grid', 'grid', 'Grid (G)', 'gridShown'),
      view('shadows', 'shade', 'Shadows', 'shadows'),
      h('hr'),
      iconButton('sun', 'Dark or light', () => this.setTheme(this.theme === 'dark' ? 'light' : 'dark'), {
        id: 'theme',
      }),
      iconButton('help', 'Help (?)', () => this.help.showModal(), { id: 'help' }),
    );
    this.setTheme(this.theme, false);
    this.hasForces(false);
  }

  canUndo(on: boolean): void {
    block(this.node.querySelector('#undo')!, 'undo', on ? null : 'there is nothing to undo');
  }

  /** Whether a motion is shown, with forces in its joints. */
  hasForces(on: boolean): void {
    block(
      this.node.querySelector('#toggle-reactions')!,
      'clip',
      on ? null : 'none is shown, or its forces are unknown',
    );
  }

  private setTheme(theme: 'light' | 'dark', chosen = true): void {
    this.theme = theme;
    document.documentElement.dataset.theme = theme;
    if (chosen) remember('cardan-theme', theme);
    this.stage.setTheme(THEMES[theme]);
    this.node.querySelector('#theme')!.replaceChildren(icon(theme === 'dark' ? 'sun' : 'moon'));
    if (chosen) this.actions.themed();
  }
}

type Switch = 'orthographic' | 'marksShown' | 'edgesShown' | 'gridShown' | 'shadows';
