// Whether there is a graphics processor.

/** Whether the drawing is computed on the processor: then shadows are off and materials are simple. */
export function isSoftware(): boolean {
  const forced = new URLSearchParams(location.search).get('quality');
  if (forced === 'high' || forced === 'light') return forced === 'light';
  const context = document.createElement('canvas').getContext('webgl2');
  const info = context?.getExtension('WEBGL_debug_renderer_info');
  const name = info && context ? String(context.getParameter(info.UNMASKED_RENDERER_WEBGL)) : '';
  context?.getExtension('WEBGL_lose_context')?.loseContext();
  return /swiftshader|llvmpipe|software|basic render/i.test(name);
}
