// The page in a notebook: messages go to the window around it, which passes them to Python.

import type { Socket } from './link';

/** A channel to the window around this one. */
export function hosted(): Socket {
  const socket: Socket = {
    readyState: 0,
    binaryType: 'arraybuffer',
    onopen: null,
    onmessage: null,
    onclose: null,
    send: (text) => window.parent.postMessage({ cardan: text }, '*'),
  };
  addEventListener('message', (event) => {
    const cardan = (event.data as { cardan?: string | ArrayBuffer } | null)?.cardan;
    if (event.source !== window.parent || cardan === undefined) return;
    if (socket.readyState === 0) {
      Object.assign(socket, { readyState: 1 });
      socket.onopen?.call(socket as WebSocket, event);
    }
    if (cardan !== '') socket.onmessage?.call(socket as WebSocket, new MessageEvent('message', { data: cardan }));
  });
  socket.send(''); // the page is ready
  return socket;
}
