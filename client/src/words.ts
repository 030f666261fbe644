// Words and numbers of the page.

/** The name of a gallery item for people: "slider_crank" is "Slider crank". */
export const title = (name: string): string =>
  name === 'rsur' ? 'RSUR' : name.replace(/_/g, ' ').replace(/^./, (c) => c.toUpperCase());

export const plural = (n: number, one: string, many: string): string => `${n} ${n === 1 ? one : many}`;

/** Factor and unit in which people read a value [rad] or [m]. */
export const shownIn = (unit: string): [number, string] => (unit === 'rad' ? [180 / Math.PI, '°'] : [1000, 'mm']);
