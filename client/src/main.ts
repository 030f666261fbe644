import './style.css';
import { App, type Recording } from './app';

const root = document.querySelector<HTMLElement>('#app')!;
const recorded = document.querySelector('#recording');

try {
  const app = new App(root, recorded ? (JSON.parse(recorded.textContent!) as Recording) : null);
  Object.assign(window, { cardan: app }); // for the console, and for tests
} catch (error) {
  root.className = 'failed';
  root.textContent = `Cardan cannot draw here: ${error instanceof Error ? error.message : error}\nThe workbench needs WebGL 2; enable it in the browser's settings, or use another browser.`;
}
