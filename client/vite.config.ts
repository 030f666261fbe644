import { defineConfig } from 'vite';
import { viteSingleFile } from 'vite-plugin-singlefile';

// Two builds: the page, one file with everything inlined; and, with --mode test, the unit tests for node --test.
export default defineConfig(({ mode }) =>
  mode === 'test'
    ? {
        build: {
          ssr: true,
          outDir: 'build',
          emptyOutDir: false,
          rolldownOptions: { input: 'tests/all.ts', output: { entryFileNames: 'tests.js' } },
        },
      }
    : {
        plugins: [viteSingleFile()],
        build: { target: 'es2022', outDir: 'build/page', chunkSizeWarningLimit: 3000 },
      },
);
