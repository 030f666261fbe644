// Elements and icons.

type Child = Node | string | null | undefined | false;
type Attributes = Record<string, string | number | boolean | ((event: never) => void) | undefined>;

/** An element: attributes by name, listeners as functions, children. */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === 'function') element.addEventListener(name, value as EventListener);
    else if (value === true) element.setAttribute(name, '');
    else if (value !== undefined && value !== false) element.setAttribute(name, String(value));
  }
  element.append(...children.filter((child): child is Node | string => Boolean(child) || child === ''));
  return element;
}

const PATHS: Record<string, string> = {
  play: '<path d="M7 4.5v15l12-7.5z" fill="currentColor" stroke="none"/>',
  pause: '<path d="M8 5v14M16 5v14" stroke-width="3"/>',
  stop: '<rect x="6" y="6" width="12" height="12" rx="2" fill="currentColor" stroke="none"/>',
  eye: '<path d="M2.5 12S6 5.5 12 5.5 21.5 12 21.5 12 18 18.5 12 18.5 2.5 12 2.5 12z"/><circle cx="12" cy="12" r="2.8"/>',
  hidden:
    '<path d="M4 4l16 16M9 5.9A10 10 0 0112 5.5c6 0 9.5 6.5 9.5 6.5a17 17 0 01-2.7 3.4M6 7.6A17 17 0 002.5 12S6 18.5 12 18.5a9.6 9.6 0 004-.9"/>',
  ghost: '<circle cx="12" cy="12" r="8.5"/><path d="M12 3.5a8.500 8.500 0 010 17z" fill="currentColor" stroke="none"/>',
  pin: '<path d="M9 3.500h6l-.8 6 3.300 3.500H6.500l3.300-3.500zM12 13v7.500"/>',
  trace: '<path d="M3 18c4 0 4-12 9-12s4 8 9 8"/><circle cx="21" cy="14" r="1.600" fill="currentColor"/>',
  undo: '<path d="M8 5L3.500 9.500 8 14M4 9.500h10a5.500 5.500 0 010 11h-3"/>',
  reset: '<path d="M4 4v5h5"/><path d="M4.6 9A8 8 0 1 1 4 13"/>',
  fit: '<path d="M4 9V4h5M15 4h5v5M20 15v5h-5M9 20H4v-5"/>',
  box: '<path d="M12 3l8 4.500v9L12 21l-8-4.500v-9zM4 7.500l8 4.500 8-4.500M12 12v9"/>',
  joint: '<circle cx="12" cy="12" r="4"/><path d="M12 2v6M12 16v6M2 12h6M16 12h6"/>',
  arrow: '<path d="M5 19L19 5M10 5h9v9"/>',
  edges: '<path d="M5 8l7-4 7 4v8l-7 4-7-4z"/><path d="M5 8l7 4 7-4M12 12v8" stroke-dasharray="2 2"/>',
  grid: '<path d="M4 9h16M4 15h16M9 4v16M15 4v16"/>',
  sun: '<circle cx="12" cy="12" r="4"/><path d="M12 2v3M12 19v3M2 12h3M19 12h3M5 5l2 2M17 17l2 2M19 5l-2 2M7 17l-2 2"/>',
  moon: '<path d="M20 14.500A8.500 8.500 0 119.500 4a7 7 0 0010.500 10.500z"/>',
  shade:
    '<ellipse cx="12" cy="19" rx="8" ry="2.500" fill="currentColor" stroke="none" opacity=".5"/><circle cx="12" cy="9" r="6"/>',
  plus: '<path d="M12 5v14M5 12h14"/>',
  check: '<path d="M4.500 12.500l5 5 10-11"/>',
  close: '<path d="M6 6l12 12M18 6L6 18"/>',
  wave: '<path d="M3 12c2-6 4-6 6 0s4 6 6 0 4-6 6 0"/>',
  weight: '<path d="M12 3v12M7.500 11L12 15.500l4.500-4.500M4 20.500h16"/>',
  down: '<path d="M6 9l6 6 6-6"/>',
  help: '<circle cx="12" cy="12" r="9"/><path d="M9.500 9.500a2.600 2.600 0 115 .8c-.6 1.500-2.500 1.700-2.500 3.400M12 17v.1"/>',
  parts: '<path d="M4 6h16M4 12h16M4 18h10"/>',
  tag: '<path d="M4 4h8l8 8-8 8-8-8z"/><circle cx="8.500" cy="8.500" r="1" fill="currentColor"/>',
};

export function icon(name: string): HTMLElement {
  const holder = h('span', { class: 'icon', 'aria-hidden': 'true' });
  holder.innerHTML = `<svg viewBox="0 0 24 24">${PATHS[name]}</svg>`;
  return holder;
}

/** A button with an icon; label is read by screen readers and shown as a tip. */
export function iconButton(
  name: string,
  label: string,
  click: () => void,
  attributes: Attributes = {},
): HTMLButtonElement {
  return h(
    'button',
    { type: 'button', class: 'icon-button', title: label, 'aria-label': label, click, ...attributes },
    icon(name),
  );
}

type Control = HTMLButtonElement | HTMLInputElement | HTMLSelectElement;

const reasons = new WeakMap<Control, Map<string, string>>();

/** Disable a control for a reason, which is its tip, or take the reason of this name away (null). */
export function block(node: Control, name: string, reason: string | null): void {
  const own = reasons.get(node) ?? new Map<string, string>();
  if ((own.get(name) ?? null) === reason) return;
  if (!reasons.has(node)) node.dataset.tip = node.title;
  reasons.set(node, own);
  if (reason === null) own.delete(name);
  else own.set(name, reason);
  const [first] = own.values();
  const tip = node.dataset.tip ?? '';
  node.disabled = own.size > 0;
  node.title = first === undefined ? tip : tip ? `${tip} – ${first}` : first;
}

/** Change a text only where it differs: each change costs a layout. */
export function setText(node: HTMLElement, text: string): void {
  if (node.textContent !== text) node.textContent = text;
}
