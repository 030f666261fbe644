import './style/base.css';
import './style/left.css';
import './style/right.css';
import './style/bottom.css';
import './style/overlay.css';
import './style/narrow.css';
import { App } from './app';
import { hosted } from './host';
import { Local, type LocalData } from './local';
import { Pass } from './pass';
import type { Recording, Source } from './source';

/** A motion in the page, a mechanism in the page, the notebook around it, or the server of its address. */
function source(): Source {
  const recorded = document.querySelector('#recording');
  if (recorded) return { recording: JSON.parse(recorded.textContent!) as Recording };
  const local = document.querySelector('#local');
  if (local) {
    const open = () => new Local(JSON.parse(local.textContent!) as LocalData);
    return { connection: { open, patience: 'Open the file again.', isAddressed: false } };
  }
  if (document.querySelector('#hosted')) {
    return { connection: { open: hosted, patience: 'Run the cell of the notebook again.', isAddressed: false } };
  }
  const pass = new Pass();
  if (!pass.isThere) return {};
  const open = () => {
    const item = new URLSearchParams(location.search).get('item') ?? '';
    return new WebSocket(`ws://${location.host}/ws?${pass.query}&item=${encodeURIComponent(item)}`);
  };
  const patience =
    'The page connects again by itself when “cardan view” runs. An address works once: if this one was used before, open the last one that “cardan view” printed.';
  return { connection: { open, patience, isAddressed: true, keep: (token) => pass.keep(token) } };
}

const root = document.querySelector<HTMLElement>('#app')!;

try {
  const app = new App(root, source());
  Object.assign(window, { cardan: app }); // for the console, and for tests
} catch (error) {
  root.className = 'failed';
  root.textContent = `Cardan cannot draw here: ${error instanceof Error ? error.message : error}\nThe workbench needs WebGL 2; enable it in the browser's settings, or use another browser.`;
}
