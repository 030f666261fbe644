import './coordinates.test';
import './player.test';
import './wire.test';
