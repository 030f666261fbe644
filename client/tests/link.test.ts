import assert from 'node:assert/strict';
import { mock, test } from 'node:test';
import { Link, type Socket } from '../src/link';

class FakeSocket {
  readyState = 0;
  binaryType = '';
  sent: { do: string; seq: number; value?: number }[] = [];
  onopen: (() => void) | null = null;
  onmessage: ((event: { data: unknown }) => void) | null = null;
  onclose: (() => void) | null = null;
  send(text: string): void {
    this.sent.push(JSON.parse(text));
  }
  open(): void {
    this.readyState = 1;
    this.onopen?.();
  }
}

function linked(): { link: Link; sockets: FakeSocket[]; said: string[] } {
  const sockets: FakeSocket[] = [];
  const said: string[] = [];
  const make = () => {
    sockets.push(new FakeSocket());
    return sockets.at(-1) as unknown as Socket;
  };
  const link = new Link(make, {
    open: () => said.push('open'),
    closed: () => said.push('closed'),
    text: (message) => said.push(String(message.is)),
    binary: (data) => said.push(`binary ${data.byteLength}`),
  });
  return { link, sockets, said };
}

test('one request is on its way, and the newest of those that wait is sent next', () => {
  mock.timers.enable({ apis: ['setInterval', 'setTimeout'] });
  const { link, sockets } = linked();
  sockets[0].open();
  for (const value of [1, 2, 3]) link.stream({ do: 'drag', value }, 0);
  assert.deepEqual(
    sockets[0].sent.map((m) => m.value),
    [1],
  );
  link.answered(1);
  assert.deepEqual(
    sockets[0].sent.map((m) => m.value),
    [1, 3],
  );
  link.answered(2);
  assert.equal(sockets[0].sent.length, 2);
  assert.equal(link.latencies.length, 2);
  mock.timers.reset();
});

test('it connects again after a pause, and tells what arrives', () => {
  mock.timers.enable({ apis: ['setInterval', 'setTimeout'] });
  const { link, sockets, said } = linked();
  assert.equal(link.send({ do: 'undo' }), 0); // not yet open
  sockets[0].open();
  sockets[0].onmessage?.({ data: '{"is": "gallery"}' });
  sockets[0].onmessage?.({ data: new ArrayBuffer(8) });
  sockets[0].readyState = 3;
  sockets[0].onclose?.();
  assert.equal(sockets.length, 1);
  mock.timers.tick(250);
  assert.equal(sockets.length, 2);
  sockets[1].open();
  assert.ok(link.connected);
  assert.deepEqual(said, ['open', 'gallery', 'binary 8', 'closed', 'open']);
  mock.timers.reset();
});
