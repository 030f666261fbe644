import { REVISION } from 'three';

document.querySelector('#app')!.textContent = `Cardan: hello from three.js ${REVISION}`;
