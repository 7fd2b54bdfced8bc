import { defineConfig } from "vite";

// File names carry no hash: the server embeds them by name, its address changes with each start (so no cache holds an
// old one), and a change of one byte stays a change of one file.
export default defineConfig({
  base: "./",
  build: {
    outDir: "../crates/view/assets",
    emptyOutDir: true,
    assetsDir: "assets",
    assetsInlineLimit: 0,
    modulePreload: false,
    target: "es2022",
    sourcemap: false,
    reportCompressedSize: true,
    rollupOptions: {
      output: {
        entryFileNames: "assets/viewer.js",
        chunkFileNames: "assets/[name].js",
        assetFileNames: "assets/[name][extname]",
      },
    },
  },
});
