// Colours of the drawing, dark and light.

import * as THREE from 'three';

export interface Theme {
  top: string;
  bottom: string;
  grid: number;
  line: number;
  edge: number;
  hemisphere: [number, number, number];
  sun: number;
  shadow: number;
}
export const THEMES: Record<'light' | 'dark', Theme> = {
  light: {
    top: '#dfe6ee',
    bottom: '#f7f9fb',
    grid: 0xd3dae3,
    line: 0xbac4d0,
    edge: 0x27313d,
    hemisphere: [0xffffff, 0xc3ccd6, 2.0],
    sun: 1.7,
    shadow: 0.2,
  },
  dark: {
    top: '#12171e',
    bottom: '#1f2731',
    grid: 0x2b3541,
    line: 0x3a4653,
    edge: 0x0c1116,
    hemisphere: [0xdfe9f5, 0x39434f, 1.9],
    sun: 1.6,
    shadow: 0.45,
  },
};

/** A background that is lighter at the horizon. */
export function gradient(top: string, bottom: string): THREE.Texture {
  const canvas = document.createElement('canvas');
  canvas.width = 2;
  canvas.height = 256;
  const context = canvas.getContext('2d')!;
  const fill = context.createLinearGradient(0, 0, 0, 256);
  fill.addColorStop(0, top);
  fill.addColorStop(1, bottom);
  context.fillStyle = fill;
  context.fillRect(0, 0, 2, 256);
  const texture = new THREE.CanvasTexture(canvas);
  texture.colorSpace = THREE.SRGBColorSpace;
  return texture;
}
