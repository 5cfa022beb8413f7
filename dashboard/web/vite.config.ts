/** Builds the dashboard's pages into dist/web: the app, and the styles and the small script of the pages that the server renders. */
import react from '@vitejs/plugin-react'
import { defineConfig } from 'vite'

const HERE = import.meta.dirname

export default defineConfig({
  root: HERE,
  plugins: [react()],
  build: {
    outDir: `${HERE}/../../dist/web`,
    emptyOutDir: true,
    manifest: true, // the server finds the hashed names of the files by their sources
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0, // the content policy refuses data: URLs
    sourcemap: false,
    rolldownOptions: { input: { app: `${HERE}/index.html`, door: `${HERE}/door.ts` } },
  },
})
