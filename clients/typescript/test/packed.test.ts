// The package as a newcomer gets it: packed, installed into an empty project, the first example of
// its README compiled under the strictest settings and run there.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { after, before, describe, test } from "node:test";
import { promisify } from "node:util";

import { packageFolder, Server, skip } from "./server.js";

const run = promisify(execFile);
const NAME = "@memory-service/client";

const GIVEN = `
import { MemoryClient } from "${NAME}";
declare const memory: MemoryClient;
`;

describe("the package", { skip, timeout: 300_000 }, () => {
  let project: string;
  let installed: string;
  let example: string;

  before(async () => {
    project = await mkdtemp(join(tmpdir(), "memory-newcomer-"));
    const { stdout } = await run("npm", ["pack", "--json", "--silent", "--pack-destination", project], {
      cwd: packageFolder,
    });
    const [{ filename }] = JSON.parse(stdout.slice(stdout.indexOf("["))) as [{ filename: string }];
    await writeFile(join(project, "package.json"), JSON.stringify({ private: true, type: "module" }));
    await run("npm", ["install", "--prefer-offline", "--no-audit", "--no-fund", `./${filename}`], { cwd: project });
    installed = join(project, "node_modules", NAME);
    const readme = await readFile(join(installed, "README.md"), "utf8");
    [, example] = /^```ts\n(.*?)^```/ms.exec(readme) as unknown as [string, string];
  });

  after(async () => {
    await rm(project, { recursive: true, force: true });
  });

  // tests/test_clients_examples.py compiles and runs all examples.
  test("the first example of the README runs", async () => {
    const server = await Server.start();
    try {
      await compile({ "first.ts": example.replace("127.0.0.1:50051", server.address) });
      const { stdout } = await run("node", ["out/first.js"], { cwd: project });
      assert.equal(stdout, "Ada likes tea\n");
    } finally {
      await server.remove();
    }
  });

  test("it installs without the frameworks of its adapters, which name the missing one", async () => {
    const missing = { ai: "ai", langgraph: "@langchain/langgraph-checkpoint", "openai-agents": undefined };
    for (const [entry, framework] of Object.entries(missing)) {
      await assert.doesNotReject(readFile(join(installed, "dist", "adapters", `${entry}.d.ts`)));
      const imported = run("node", ["-e", `import("${NAME}/${entry}")`], { cwd: project });
      await (framework === undefined ? imported : assert.rejects(imported, new RegExp(`Cannot find package '${framework}'`)));
    }
  });

  test("the compiler sees what is wrong", async () => {
    const wrong = `${GIVEN}
      // @ts-expect-error there is no such role
      await memory.add({ type: "chat_message", role: "boss", parts: [] });
      // @ts-expect-error a Date is no JSON value
      await memory.saveState("now", new Date());
      // @ts-expect-error a bigint is not JSON
      await memory.add({ type: "data", data: { big: 1n } });
      // @ts-expect-error what comes back cannot be changed
      (await memory.get("x")).id = "y";
    `;
    await compile({ "wrong.ts": wrong });
  });

  test("no type of gRPC or protobuf can be reached from the types of the package", async () => {
    const seen = new Set<string>();
    const visit = async (file: string): Promise<void> => {
      if (seen.has(file)) {
        return;
      }
      seen.add(file);
      const declarations = await readFile(file, "utf8");
      for (const [, from] of declarations.matchAll(/(?:from|import\() ?"([^"]+)"/g)) {
        assert.match(from!, /^\.\/[a-z-]+\.js$/, `${file} imports ${from}`);
        await visit(resolve(dirname(file), from!.replace(/\.js$/, ".d.ts")));
      }
    };
    await visit(join(installed, "dist", "index.d.ts"));
    assert.ok(seen.size > 20, `${seen.size} files`);
  });

  /** Compiles files in the project, with the types of the libraries checked as well. */
  async function compile(files: Readonly<Record<string, string>>): Promise<void> {
    const folder = join(project, "src");
    await rm(folder, { recursive: true, force: true });
    await mkdir(folder);
    for (const [name, code] of Object.entries(files)) {
      await writeFile(join(folder, name), code);
    }
    const compilerOptions = {
      target: "ES2022",
      module: "NodeNext",
      strict: true,
      exactOptionalPropertyTypes: true,
      noUncheckedIndexedAccess: true,
      skipLibCheck: false,
      types: [],
      rootDir: "src",
      outDir: "out",
    };
    await writeFile(join(project, "tsconfig.json"), JSON.stringify({ compilerOptions, include: ["src"] }));
    const compiler = join(packageFolder, "node_modules", "typescript", "bin", "tsc");
    await run(process.execPath, [compiler, "-p", project]).catch((error: { stdout: string }) => {
      assert.fail(error.stdout);
    });
  }
});
