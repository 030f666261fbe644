import './style/base.css';
import './style/left.css';
import './style/right.css';
import './style/bottom.css';
import './style/overlay.css';
import './style/narrow.css';
import { App } from './app';
import { hosted } from './host';
import type { Recording, Source } from './source';

/** A motion in the page, the notebook around it, or the server of its address. */
function source(): Source {
  const recorded = document.querySelector('#recording');
  if (recorded) return { recording: JSON.parse(recorded.textContent!) as Recording };
  if (document.querySelector('#hosted')) {
    return { connection: { open: hosted, patience: 'Run the cell of the notebook again.', isAddressed: false } };
  }
  const token = new URLSearchParams(location.search).get('token');
  if (!token) return {};
  const open = () => {
    const item = new URLSearchParams(location.search).get('item') ?? '';
    const query = `token=${encodeURIComponent(token)}&item=${encodeURIComponent(item)}`;
    return new WebSocket(`ws://${location.host}/ws?${query}`);
  };
  const patience = 'The page connects again by itself when “cardan view” runs.';
  return { connection: { open, patience, isAddressed: true } };
}

const root = document.querySelector<HTMLElement>('#app')!;

try {
  const app = new App(root, source());
  Object.assign(window, { cardan: app }); // for the console, and for tests
} catch (error) {
  root.className = 'failed';
  root.textContent = `Cardan cannot draw here: ${error instanceof Error ? error.message : error}\nThe workbench needs WebGL 2; enable it in the browser's settings, or use another browser.`;
}
