// Builds the console from its sources: `npm run build` into the Python package, where
// it is served from, or into another directory (`node build.mjs --into DIRECTORY`);
// `--tests` builds the tests of its modules instead.

import { build } from "esbuild";
import { mkdir, readFile, readdir, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

const HERE = fileURLToPath(new URL(".", import.meta.url));
const PACKAGE = path.join(HERE, "..", "placement", "console", "static");
const LARGEST = 80_000;
// What is in the built files and not ours.
const LIBRARIES = ["preact"];

const COMMON = {
  absWorkingDir: HERE,
  bundle: true,
  jsx: "automatic",
  jsxImportSource: "preact",
  legalComments: "none",
  logLevel: "warning",
};

async function buildTests() {
  const names = await readdir(path.join(HERE, "tests"));
  await rm(path.join(HERE, "build"), { recursive: true, force: true });
  await build({
    ...COMMON,
    entryPoints: names.filter((name) => name.endsWith(".test.ts")).map((name) => `tests/${name}`),
    outdir: "build",
    outExtension: { ".js": ".mjs" },
    platform: "node",
    format: "esm",
    packages: "external",
  });
}

async function buildConsole(target) {
  await rm(target, { recursive: true, force: true });
  await mkdir(target, { recursive: true });
  const { metafile } = await build({
    ...COMMON,
    entryPoints: { console: "src/main.tsx", style: "src/style.css", icon: "src/icon.svg" },
    outdir: target,
    entryNames: "[name]-[hash]",
    loader: { ".svg": "copy" },
    format: "esm",
    target: "es2022",
    minify: true,
    metafile: true,
    define: { "process.env.NODE_ENV": '"production"' },
  });
  const made = Object.keys(metafile.outputs).map((name) => path.basename(name));
  const find = (start) => made.find((name) => name.startsWith(start));
  const page = await readFile(path.join(HERE, "src", "index.html"), "utf8");
  await writeFile(
    path.join(target, "index.html"),
    page
      .replace("%script%", find("console-"))
      .replace("%style%", find("style-"))
      .replace("%icon%", find("icon-")),
  );
  await writeFile(path.join(target, "licences.txt"), await listLicences());
  await checkSize(target);
}

async function listLicences() {
  const parts = await Promise.all(
    LIBRARIES.map(async (name) => {
      const directory = path.join(HERE, "node_modules", name);
      const { version, license } = JSON.parse(
        await readFile(path.join(directory, "package.json"), "utf8"),
      );
      const text = await readFile(path.join(directory, "LICENSE"), "utf8");
      return `${name} ${version} (${license})\n\n${text.trim()}\n`;
    }),
  );
  return parts.join("\n");
}

async function checkSize(target) {
  let size = 0;
  for (const name of await readdir(target)) {
    size += gzipSync(await readFile(path.join(target, name))).length;
  }
  console.log(`${path.relative(process.cwd(), target) || "."}: ${size} bytes compressed`);
  if (size > LARGEST) {
    throw new Error(`the console may have ${LARGEST} bytes`);
  }
}

const asked = process.argv.slice(2);
if (asked[0] === "--tests") {
  await buildTests();
} else {
  await buildConsole(asked[0] === "--into" ? path.resolve(asked[1]) : PACKAGE);
}
