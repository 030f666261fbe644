import './coordinates.test';
import './player.test';
import './plots.test';
import './wire.test';
