import './coordinates.test';
import './keys.test';
import './link.test';
import './panels.test';
import './player.test';
import './plots.test';
import './wire.test';
