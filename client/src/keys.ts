// The keyboard: which key does what.

export interface KeyActions {
  cancel(): void;
  undo(): void;
  play(): void;
  arrow(x: number, y: number): void;
  zoom(factor: number): void;
  /** Press the button with an id, so that a key and a click do the same. */
  click(id: string): void;
  ofPart(action: 'hide' | 'ghost' | 'pin' | 'trace'): void;
}

export interface Press {
  key: string;
  ctrlKey: boolean;
  metaKey: boolean;
  altKey: boolean;
  shiftKey: boolean;
}

const ARROWS: Record<string, [number, number]> = {
  ArrowLeft: [-1, 0],
  ArrowRight: [1, 0],
  ArrowUp: [0, 1],
  ArrowDown: [0, -1],
};
const BUTTONS: Record<string, string> = {
  f: 'fit',
  r: 'reset',
  o: 'toggle-ortho',
  j: 'toggle-joints',
  n: 'toggle-labels',
  g: 'toggle-grid',
  l: 'toggle-live',
  '?': 'help',
};
const OF_PART: Record<string, 'hide' | 'ghost' | 'pin' | 'trace'> = { h: 'hide', t: 'ghost', p: 'pin', x: 'trace' };
const ZOOM: Record<string, number> = { '+': 1 / 1.15, '=': 1 / 1.15, '-': 1.15 };

/** Do what a key asks for; whether the browser shall not use it.  typing: in a field; onButton: space presses it. */
export function press(event: Press, typing: boolean, onButton: boolean, actions: KeyActions): boolean {
  if (event.key === 'Escape') {
    actions.cancel();
    return false;
  }
  if (typing) return false;
  if ((event.ctrlKey || event.metaKey) && !event.shiftKey && event.key.toLowerCase() === 'z') {
    actions.undo();
    return true;
  }
  if (event.ctrlKey || event.metaKey || event.altKey) return false;
  const arrow = ARROWS[event.key];
  if (arrow) {
    actions.arrow(...arrow);
    return true;
  }
  if (event.key === ' ') {
    if (!onButton) actions.play();
    return !onButton;
  }
  const key = event.key.toLowerCase();
  if (BUTTONS[key]) actions.click(BUTTONS[key]);
  else if (OF_PART[key]) actions.ofPart(OF_PART[key]);
  else if (ZOOM[key]) actions.zoom(ZOOM[key]);
  return false;
}
