// Installs the client beside the frameworks as its users do. Its own dependencies are in the parent folder.

import { execFileSync } from "node:child_process";
import { cpSync, rmSync } from "node:fs";

const installed = "node_modules/@memory-service/client";
for (const folder of [installed, "build"]) {
  rmSync(folder, { recursive: true, force: true });
}
const compiler = ["../node_modules/typescript/bin/tsc", "-p", "../tsconfig.adapters.json", "--outDir", `${installed}/dist`];
execFileSync(process.execPath, compiler, { stdio: "inherit" });
cpSync("../package.json", `${installed}/package.json`);
