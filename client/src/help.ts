// What the mouse and the keys do.

import { h } from './dom';

const ROWS: [string, string][] = [
  ['Drag a part', 'it follows as far as its joints allow; the camera stays still'],
  ['Ctrl + drag', 'pull it with a force, under gravity'],
  ['Drag the background', 'turn the view; right button: shift it; wheel: zoom'],
  ['Click a part', 'select it: hide, see through, pin, trace'],
  ['Arrow keys', 'move the selected part, step through a motion, or turn the view'],
  ['Space', 'play or pause'],
  ['Ctrl + Z · R · F', 'undo · first pose · show everything'],
  ['H · T · P · X', 'of the selected part: hide · see through · pin · trace'],
  ['J · N · G · O · L', 'joints · names · grid · orthographic · live gravity'],
  ['+ · −', 'nearer · farther'],
];

export function helpDialog(): HTMLDialogElement {
  const list = h('dl');
  for (const [key, text] of ROWS) list.append(h('dt', {}, h('kbd', {}, key)), h('dd', {}, text));
  const dialog = h('dialog', { id: 'help-text' }, h('h3', {}, 'How to use it'), list);
  dialog.addEventListener('click', () => dialog.close());
  return dialog;
}
